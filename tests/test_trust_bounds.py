"""Bounds against hostile logs: what lies beyond them is counted and said, never silently dropped."""

import json

import pytest

from forensics.cli.main import run
from forensics.engine import records
from forensics.grammar import server_args
from forensics.timeline import sieve
from forensics.timeline.firsts import firsts
from forensics.timeline.roles import PHRASES, phrase_of

LAUNCH = "[2026-03-01 {0:02d}:{1:02d}:00] server_args=ServerArgs(model_path='/m', tp_size=1, port={2})\n[2026-03-01 {0:02d}:{1:02d}:01 TP0] Load weight begin. avail mem=1.0 GB\n[2026-03-01 {0:02d}:{1:02d}:02] The server is fired up and ready to roll!\n"


def report_of(path, capsys, *more):
    assert run(["analyze", "--format", "json", *more, str(path)]) in (0, 1)
    return json.loads(capsys.readouterr().out)


def launch(number, port=30000):
    return LAUNCH.format(number * 7 // 60, number * 7 % 60, port)


def launches(path, count):
    path.write_text("".join(launch(i) for i in range(count)))


def test_the_first_and_the_last_launches_are_described_and_the_others_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("forensics.timeline.launches.OLDEST", 2)
    monkeypatch.setattr("forensics.timeline.launches.NEWEST", 3)
    launches(tmp_path / "a.log", 9)
    report = report_of(tmp_path / "a.log", capsys, "--launch", "all")
    assert [x["id"] for x in report["launches"]] == ["L1", "L2", "L7", "L8", "L9"]
    assert any("of 9 launches" in p["message"] for p in report["problems"])
    asked = report_of(tmp_path / "a.log", capsys, "--launch", "5")
    assert asked["focus"] == "L5"


def test_few_launches_are_all_described(tmp_path, capsys):
    launches(tmp_path / "a.log", 9)
    report = report_of(tmp_path / "a.log", capsys, "--launch", "all")
    assert len(report["launches"]) == 9
    assert not report["problems"]


def test_launches_of_two_nodes_are_still_joined(tmp_path, capsys):
    for node in (0, 1):
        text = "".join(launch(i) for i in range(3))
        (tmp_path / f"node{node}.log").write_text(text.replace("tp_size=1", f"tp_size=2, nnodes=2, node_rank={node}"))
    report = report_of(tmp_path, capsys, "--launch", "all")
    assert len(report["launches"]) == 3


def test_settings_that_differ_everywhere_are_counted_only(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("forensics.diagnose.variables.MAX_COMPARED", 30)
    path = tmp_path / "a.log"
    fields = [", ".join(f"x{j}={i * 50 + j}" for j in range(20)) for i in range(6)]
    path.write_text("".join(launch(i).replace("port", f"{fields[i]}, port") for i in range(6)))
    report = report_of(path, capsys, "--launch", "all")
    assert any("too many settings" in p["message"] for p in report["problems"])
    assert report["attempts"][0]["against"] is None
    assert all(a["against"] and len(a["changed"]) == 20 for a in report["attempts"][1:])


def test_combinations_of_rank_axes_are_bounded_and_told(tmp_path, capsys):
    path = tmp_path / "a.log"
    names = [f"{a}{b}" for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJ"]
    path.write_text("".join(f"[2026-03-01 10:00:01 {n}1 TP0] Load weight end. elapsed=1 s\n" for n in names))
    report = report_of(path, capsys)
    assert len(report["launches"][0]["ranks"]["seen"]) == records.MAX_COMBINATIONS
    assert any("more ranks than are told apart" in n for n in report["sources"][0]["notes"])


def test_many_ranks_are_bounded_and_told(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text("".join(f"[2026-03-01 10:00:01 TP{i}] Load weight end. elapsed=1 s\n" for i in range(0, 40_000, 3)))
    report = report_of(path, capsys)
    assert any("more ranks than are told apart" in n for n in report["sources"][0]["notes"])


def stack(frames):
    lines = "".join(
        f'  File "/opt/sglang/srt/a{i % 7}.py", line {i}, in f{i}\n    return f(x)\n' for i in range(frames)
    )
    head = "[2026-03-01 10:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    return head + lines + "RecursionError: maximum recursion depth exceeded\n"


def test_the_ends_of_a_deep_stack_are_read_and_the_middle_is_counted(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text(stack(5000))
    report = report_of(path, capsys)
    first = report["launches"][0]["first_failure"]
    assert "RecursionError: maximum recursion depth exceeded" in first["text"]
    assert len(report["launches"][0]["failures"]) == 1
    assert any("6,000 lines left out" in p["message"] for p in report["problems"])


def test_a_stack_as_deep_as_python_allows_is_read_whole(tmp_path, capsys):
    (tmp_path / "a.log").write_text(stack(1000) * 3)
    report = report_of(tmp_path / "a.log", capsys)
    assert not report["problems"]
    assert report["launches"][0]["failures"][0]["count"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "ServerArgs(a=1, b='x', c=None, d=True, e=-1.5, f=[1, 2], g={'a': (1, 2)}, h=X(y=1, z='q'), i=Y.z)",
        "{'a': 1, 'b': \"it's\", 'c': 'q\\'q', 'd': [], 'e': {}}",
        "ServerArgs(a=1, b='x, c=2)",
        "ServerArgs(a=1, b=[1, 2, c=3)",
        "ServerArgs(a=1, b=2",
        "ServerArgs(a=1, b=@, c=3)",
        "ServerArgs(a=1, b=<X.y: 'a, b'>, c=3)",
        "ServerArgs(a=1]",
        "{'a': 1)",
        "ServerArgs()",
        "ServerArgs(a=1,)",
        "ServerArgs( a = 1 , b = 'x' ) and more, words)",
        "ServerArgs(a=" + "(" * 60 + ")" * 60 + ", b=2)",
        "ServerArgs(a=inf, b=nan, c=.5, d=1e5, e=0x10)",
    ],
)
def test_fields_one_by_one_are_what_the_grammar_makes_of_the_whole(text, monkeypatch):
    server_args.read_server_args.cache_clear()
    quick = server_args.read_server_args("x server_args=" + text)
    server_args.read_server_args.cache_clear()
    monkeypatch.setattr(server_args, "_by_field", lambda *_: None)
    whole = server_args.read_server_args("x server_args=" + text)
    server_args.read_server_args.cache_clear()
    assert repr(quick) == repr(whole)


def test_the_sieve_lets_every_matching_needle_through():
    """Texts made from each phrase match it; the sieve must not hold them back."""
    from pattern_baits import samples

    for phrase in PHRASES:
        for text in samples(phrase.needle.pattern, count=6):
            if phrase.needle.pattern.search(text):
                assert phrase.needle.number in sieve.near(text), (phrase.key, text)
    assert phrase_of("nothing of note") is None


def test_every_shape_is_read_once_for_all_launches(tmp_path):
    from forensics.engine.scan import scan

    launches(tmp_path / "a.log", 3)
    table = scan([tmp_path / "a.log"])
    assert firsts(table) is firsts(table)
    assert [firsts(table).text(s.id) for s in table.shapes] == [table.text(s.row).strip() for s in table.shapes]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_line_without_end_is_passed_over_the_same_way_whatever_the_chunks(processes, tmp_path, monkeypatch):
    from forensics.engine import scan as scanning
    from forensics.engine import worker
    from forensics.schema.options import Options

    monkeypatch.setattr(worker, "MAX_LINE", 9000)
    monkeypatch.setattr(scanning, "MAX_LINE", 9000)
    path = tmp_path / "a.log"
    long = [
        f"[2026-03-01 10:00:0{i} TP0] RuntimeError: {'x' * n}" for i, n in enumerate((20, 8000, 30_000, 9000, 400_000))
    ]
    path.write_text("\n".join([*long[:3], "Killed", *long[3:], "[2026-03-01 10:01:00 TP1] Load weight begin."]))
    tables = [
        scanning.scan([path], Options(chunk_bytes=size, processes=processes)) for size in (64, 1000, 8999, 1 << 20)
    ]
    lines = path.read_text().split("\n")
    for table in tables:
        assert table.line.tolist() == list(range(1, 8))
        assert [table.text(r)[:10] for r in range(7)] == [line.partition("] ")[2][:10] or line for line in lines]
        assert table.offset.tolist() == tables[0].offset.tolist()
        assert table.length.tolist() == tables[0].length.tolist()
    assert max(tables[0].length) == 9000


def test_lines_of_which_only_the_beginning_is_read_are_counted(tmp_path):
    from forensics.engine.scan import scan

    path = tmp_path / "a.log"
    lines = [f"[2026-03-01 10:00:0{i} TP0] RuntimeError: {'x' * n}" for i, n in enumerate((20, 65_000, 70_000, 90_000))]
    path.write_text("\n".join(lines))
    (info,) = scan([path]).infos
    assert info.notes == ["only the first 64 KiB were read of 2 longer lines"]
