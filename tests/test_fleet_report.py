"""The report on a fleet: exact tests, clusters, drafts, formats, hostile names and texts."""

from __future__ import annotations

import json
import math
import re
from datetime import timedelta
from pathlib import Path

import pytest
from fleet_logs import START, Here, log, write_fleet
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.cli.main import run as command
from forensics.fleet.chance import adjusted, binomial_tail, fisher_tail, hypergeometric, stratified_tail
from forensics.fleet.clusters import clusters, shape_of
from forensics.fleet.plan import Settings
from forensics.fleet.regress import ANY, FLEET, regressions
from forensics.fleet.run import plan, run
from forensics.fleet.show import render
from forensics.fleet.summary import Summary, label, summarize
from forensics.fleet.suspects import suspects
from forensics.knowledge.finding import check_finding


def row(number: int, **values: object) -> dict[str, object]:
    found: dict[str, object] = {
        "incident": f"{number:016x}",
        "name": f"logs/{number}.log",
        "status": "ok",
        "service": "chat",
        "node": None,
        "failed": 0,
        "explained": 0,
        "cause": None,
        "time": START.timestamp() + number,
        "version": "0.5.9",
        "stage": "decode",
        "failure": None,
        "mechanism": None,
        "reached": "serving",
        "headline": "",
        "path": None,
        "line": None,
    }
    return {**found, **values}


def dataset(folder: Path, logs: Path, **chosen: object) -> Summary:
    run(plan([str(logs)], Settings(**chosen)), folder, Here(), parquet=False, quiet=True)
    return summarize(folder)


@given(st.integers(1, 40), st.data())
@settings(max_examples=60, deadline=None)
def test_tails_equal_sums_over_exact_fractions(total, data):
    marked = data.draw(st.integers(0, total))
    drawn = data.draw(st.integers(0, total))
    seen = data.draw(st.integers(0, drawn))
    exact = sum(
        math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in range(seen, drawn + 1)
    ) / math.comb(total, drawn)
    assert stratified_tail(seen, [(drawn, marked, total)]) == pytest.approx(exact, abs=1e-12)
    assert hypergeometric(drawn, marked, total).sum() == pytest.approx(1)
    by_hand = sum(math.comb(total, k) * 0.25**k * 0.75 ** (total - k) for k in range(seen, total + 1))
    assert binomial_tail(seen, total, 0.25) == pytest.approx(by_hand, rel=1e-9)


def test_tails_at_their_ends():
    assert binomial_tail(0, 5, 0.1) == 1.0 and binomial_tail(6, 5, 0.1) == 0.0
    assert binomial_tail(500, 500, 0.001) == 0.0 or binomial_tail(500, 500, 0.001) < 1e-300
    assert fisher_tail(0, 5, 0, 5) == 1.0
    assert fisher_tail(5, 5, 0, 5) == pytest.approx(1 / math.comb(10, 5))


def test_correction_for_many_tests():
    assert adjusted([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert adjusted([]) == []


def test_a_bad_machine_stands_out_and_even_ones_do_not():
    even = [row(i, node=f"n{i % 20}", failed=int(i // 20 % 5 == 0)) for i in range(400)]
    assert suspects(even, label) == ()
    bad = [{**r, "failed": 1} if r["node"] == "n7" else r for r in even]
    (found,) = suspects(bad, label)
    assert (found.node, found.failed, found.incidents, found.test) == ("n7", 20, 20, "share")
    assert found.q < 1e-6 and found.expected < 6


def test_a_bad_service_does_not_accuse_its_machines():
    rows = [row(i, node=f"n{i % 10}", service="good") for i in range(200)]
    rows += [row(1000 + i, node=f"n{i % 2}", service="broken", failed=1) for i in range(40)]
    assert suspects(rows, label) == ()


def test_where_only_failures_are_kept_their_number_counts():
    rows = [row(i, node=f"n{i % 30}", failed=1) for i in range(60)]
    rows += [row(100 + i, node="n3", failed=1) for i in range(15)]
    (found,) = suspects(rows, label)
    assert (found.node, found.test, found.failed) == ("n3", "count", 17)


def test_chance_alone_accuses_nobody():
    import random

    dice = random.Random(4)
    wrong = 0
    for _ in range(20):
        rows = [row(i, node=f"n{i % 50}", failed=int(dice.random() < 0.2)) for i in range(1000)]
        wrong += bool(suspects(rows, label))
    assert wrong <= 2


def test_a_regression_after_a_version_change_is_found_in_its_service():
    rows = [
        row(
            i,
            service="a",
            version="0.5.9" if i < 40 else "0.5.10",
            failed=int(i >= 40 and i % 2),
            cause="x",
            explained=1,
        )
        for i in range(80)
    ]
    rows += [row(100 + i, service="b") for i in range(40)]
    found = regressions(rows, label)
    assert {(r.service, r.before, r.after, r.cause) for r in found} >= {
        ("a", "0.5.9", "0.5.10", "x"),
        (FLEET, "0.5.9", "0.5.10", "x"),
    }
    own = next(r for r in found if r.service == "a")
    assert (own.failed_before, own.all_before, own.failed_after, own.all_after) == (0, 40, 20, 40)
    calm = [row(i, version="0.5.9" if i < 40 else "0.5.10", failed=int(i % 4 == 0)) for i in range(80)]
    assert regressions(calm, label) == ()
    assert ANY != "x"


def test_failures_that_differ_in_what_varies_are_one_cluster():
    rows = [row(i, failed=1, failure=f"ValueError: widget {i} refused '/srv/{i}/x.bin' at 0x{i:08x}") for i in range(9)]
    rows += [row(50, failed=1, failure="KeyError: the lattice has no such corner")]
    big, small = clusters(rows)
    assert (big.count, small.count) == (9, 1)
    assert big.incidents[0] == rows[0]["incident"]
    assert shape_of("A 12  b 0xdeadbeef") == "a # b #"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> tuple[Path, Summary]:
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(folder / "logs", 36, machines=6)
    return folder / "out", dataset(folder / "out", folder / "logs")


def test_the_summary_of_a_fleet(mixed):
    _, found = mixed
    assert (found.incidents, found.failed, found.unread) == (36, 12, 0)
    assert sum(c.count for c in found.causes) == 12
    assert all(sum(c.over_time) == c.count and len(c.over_time) == len(found.periods) for c in found.causes)
    assert {s.name for s in found.nodes} == {f"node{n}" for n in range(6)}
    assert [(s.name, s.incidents, s.failed) for s in found.versions] == [("0.5.9", 36, 12)]
    assert any("lattice widget" in c.text for c in found.clusters)
    matched = {c.cause for c in found.causes}
    assert found.findings > 100 and not matched & {f for f, _ in found.never}


def test_drafts_are_findings_that_the_checks_accept(mixed, tmp_path, capsys):
    folder, found = mixed
    assert command(["fleet", "report", str(folder), "--drafts", str(tmp_path / "kb")]) == 0
    said = capsys.readouterr()
    files = sorted((tmp_path / "kb" / "findings").glob("*.md"))
    assert len(files) == len(found.clusters) and str(files[0]) in said.err
    finding, problems = check_finding(files[0], "", str(files[0]))
    assert finding is not None, problems
    text = files[0].read_text()
    files[0].write_text(text + "mine\n")
    assert command(["fleet", "report", str(folder), "--drafts", str(tmp_path / "kb")]) == 0
    assert files[0].read_text().endswith("mine\n")


def test_the_formats_agree(mixed, capsys):
    folder, found = mixed
    assert command(["fleet", "report", str(folder), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["failed"] == 12 and data["causes"][0]["over_time"]
    plain = render(found, "text", 100)
    page = render(found, "html")
    for cause in found.causes:
        assert cause.cause in plain and cause.cause in page
    assert max(map(len, plain.split("\n"))) <= 100
    assert "<script" not in page and 'http-equiv="Content-Security-Policy"' in page and " style=" not in page
    assert command(["fleet", "report", str(folder), "--format", "pdf"]) == 2


def test_no_dataset_is_a_clear_error(tmp_path, capsys):
    assert command(["fleet", "report", str(tmp_path)]) == 2
    assert "is no finished dataset" in capsys.readouterr().err
    (tmp_path / "summary.sqlite").write_text("not a database, whatever its name says; it is rather long, too")
    assert command(["fleet", "report", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_hostile_names_and_texts_stay_inert(tmp_path):
    folder = tmp_path / "logs" / "<script>alert(1)</script>\x1b]0;x\x07"
    folder.mkdir(parents=True)
    evil = "ValueError: <img src=x onerror=alert(1)> \"'&\u202e \x1b[31m lattice"
    text = log(0, "odd").replace("ValueError: lattice widget 0 refused the frobnication of slot 0", evil)
    assert evil in text
    (folder / "server.log").write_text(text, encoding="utf-8")
    found = dataset(tmp_path / "out", tmp_path / "logs")
    page = render(found, "html")
    assert "<script>" not in page and "<img" not in page and "onerror" in page
    for shown in (page, render(found, "text", everything=True), render(found, "json")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)


def test_time_is_cut_into_periods_that_fit(tmp_path):
    for number in range(4):
        path = tmp_path / "logs" / f"{number}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text(log(number, "oom", begin=START + timedelta(days=3 * number)), encoding="utf-8")
    found = dataset(tmp_path / "out", tmp_path / "logs")
    assert found.periods == ("2026-03-02", "2026-03-05", "2026-03-08", "2026-03-11")
