"""The version interval holds the truth, and is narrow where the log tells much."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forensics.engine.scan import scan
from forensics.rulebook.versions import in_range, is_dev, older, parse_range, version_key
from forensics.timeline.catalog import catalog
from forensics.timeline.facts import collect_facts
from forensics.timeline.version import infer_version

SAMPLES = Path(__file__).parent.parent / "samples"
REAL = ("0.5.23", "0.5.8.post1", "0.5.17")


def interval_of(path):
    table = scan([path])
    rows = np.arange(len(table))
    starts = table.rows_of_kind("server-args")
    if len(starts) > 1:
        rows = rows[: int(starts[1])]
    return infer_version(table, rows, collect_facts(table, rows, ()))


def real_runs():
    for truth in sorted(SAMPLES.rglob("truth.json")):
        version = json.loads(truth.read_text()).get("sglang_version")
        if version in REAL and (truth.parent / "log.txt").exists():
            yield pytest.param(truth.parent / "log.txt", version, id=truth.parent.name)


@pytest.mark.parametrize(("path", "version"), list(real_runs()))
def test_interval_of_a_real_run_holds_its_release(path, version):
    found = interval_of(path)
    assert found.low is None or not older(version, found.low)
    assert found.high is None or not older(found.high, version)
    if b"server_args=" in path.read_bytes():
        read = catalog().read
        assert found.low is not None
        assert not older(found.low, read[read.index(version) - 2])
        assert found.high in (version, None if version == read[-1] else version)
    assert all(reason for reason, _ in found.grounds)


def test_development_build_stays_open(tmp_path):
    path = tmp_path / "log"
    path.write_bytes((SAMPLES / "cases/saga/attempt-1.log").read_bytes())
    table = scan([path])
    rows = np.arange(len(table))
    report = (SAMPLES / "cases/saga/check_env.txt",)
    found = infer_version(table, rows, collect_facts(table, rows, (), report))
    assert found.exact == found.low == "0.5.8.post2.dev418+g7c1d9e204"
    assert found.high is None
    assert not older(found.exact, interval_of(path).low)


def read(tmp_path, text):
    path = tmp_path / "log"
    path.write_text(text)
    return interval_of(path)


@pytest.mark.parametrize(
    ("line", "exact"),
    [
        ("FileNotFoundError: /usr/lib/python3/site-packages/sglang-0.5.4.post2.dist-info/METADATA", "0.5.4.post2"),
        (
            "+ docker run --gpus all lmsysorg/sglang:v0.5.6-cu129 python3 -m sglang.launch_server --model-path m",
            "0.5.6",
        ),
        ("ERROR: sglang 0.5.9 requires xgrammar==0.1.27, but you have xgrammar 0.1.25", "0.5.9"),
        ("sglang: 0.5.3", "0.5.3"),
    ],
)
def test_stated_versions(tmp_path, line, exact):
    found = read(tmp_path, line + "\n")
    assert (found.low, found.high, found.exact) == (exact, exact, exact)
    assert found.grounds[0][1].line == 1


def test_advice_about_a_version_states_nothing(tmp_path):
    found = read(tmp_path, "ImportError: please install sglang==0.5.9 or upgrade\n")
    assert found.exact is None


def test_wordings_bound_the_release(tmp_path):
    found = read(tmp_path, "[2026-01-01 00:00:00 TP0] Init parallel begin.\n")
    assert older("0.5.20", found.low)
    found = read(
        tmp_path,
        "[2026-01-01 00:00:00] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n",
    )
    assert older("0.5.2", found.low)


def test_no_evidence_is_an_open_interval(tmp_path):
    found = read(tmp_path, "hello\n")
    assert (found.low, found.high, found.exact, found.grounds) == (None, None, None, ())


def test_order_of_release_names():
    names = [
        "0.5.0rc2",
        "0.5.8",
        "0.5.8.post1",
        "0.5.8.post2.dev418+g7c1d9e204",
        "0.5.9",
        "0.5.10rc0",
        "0.5.10",
        "0.5.10.post1",
    ]
    assert sorted(set(names), key=version_key) == names
    assert is_dev(names[3])
    assert not is_dev("0.5.10")
    assert version_key("0.4.6.post4-cu124") == version_key("0.4.6.post4")
    assert version_key("main") is None
    assert in_range("0.5.8.post1", ">=0.5.8,<0.5.9")
    assert not in_range("0.5.9.dev1", ">=0.5.9")
    assert parse_range(">=abc") is None
    assert in_range("0.5.9", ">=abc") is None


def test_offered_choices_bound_the_release(tmp_path):
    choices = ", ".join(f"'{c}'" for c in sorted(catalog().choices("--attention-backend", "0.5.13.post1")))
    text = f"launch_server.py: error: argument --attention-backend: invalid choice: 'x' (choose from {choices})\n"
    found = read(tmp_path, text)
    assert not older("0.5.13.post1", found.low)
    assert not older(found.high, "0.5.13.post1")


def test_refused_options_bound_the_release(tmp_path):
    found = read(tmp_path, "launch_server.py: error: unrecognized arguments: --fp8-gemm-backend triton\n")
    assert (found.low, found.high) == (None, "0.5.6.post1")


def test_batch_lines_alone_give_a_lower_bound(tmp_path):
    found = read(
        tmp_path,
        "[2026-01-01 00:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 8, #cached-token: 0, token usage: 0.00, "
        "#running-req: 0, #queue-req: 0, #pending-token: 4, cuda graph: False\n" * 3,
    )
    assert older("0.5.10", found.low)
    assert found.grounds[-1][1].line == 1
