"""What real logs do to a parser: glued writers, bars, odd bytes, odd numbers, endless lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_dump import dump

from forensics.engine.scan import scan
from forensics.engine.table import GLUED, TRUNCATED, EventTable
from forensics.errors import InputError, UsageError
from forensics.schema.options import Options

DECODE = "[2026-05-04 10:00:02 TP2] Decode batch, #running-req: 12, #token: 3456, token usage: 0.12, cuda graph: True, gen throughput (token/s): 812.44, #queue-req: 3"


def table_of(folder: Path, data: bytes | str, **options: object) -> EventTable:
    path = folder / "server.log"
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
    return scan([path], Options(**options))  # type: ignore[arg-type]


def column(table: EventTable, name: str) -> list[float]:
    return table.series["decode"].columns[name].tolist()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (DECODE, "throughput", 812.44),
        (DECODE.replace("12,", "-12,", 1), "running", -12.0),
        (DECODE.replace("0.12", "1e-05"), "token_usage", 1e-05),
        (DECODE.replace("3456", "123456789012"), "tokens", 123456789012.0),
        (DECODE.replace("812.44", "8.123456789012"), "throughput", 8.123456789012),
        (DECODE.replace("812.44", "inf"), "throughput", float("inf")),
        (DECODE.replace("True", "False"), "cuda_graph", 0.0),
        (DECODE.replace("batch,", "batch."), "queue", 3.0),
        (DECODE + ", #brand-new: 77", "brand_new", 77.0),
        # A colour code inside a number: what is read is no number, rather than another one.
        (DECODE.replace("0.12", "0\x1b[31m.12"), "token_usage", float("nan")),
        (DECODE.replace("0.12", "\x1b[31m0.12\x1b[0m"), "token_usage", 0.12),
        (DECODE + ", ", "queue", 3.0),
        (DECODE.replace("#token: ", "#full token: ").replace("token usage", "full token usage"), "token_usage", 0.12),
        (DECODE.replace("cuda graph", "npu graph"), "cuda_graph", 1.0),
        ("[gpu=2] " + DECODE.partition("] ")[2].replace("batch,", "batch."), "running", 12.0),
        ("[2026-05-04 10:00:02.123 DP0 PP1 ATTN_CP0 MOE_DP0 TP12 EP3] " + DECODE.partition("] ")[2], "queue", 3.0),
    ],
)
def test_batch_line_values(tmp_path: Path, text: str, name: str, value: float) -> None:
    assert column(table_of(tmp_path, text + "\n"), name) == pytest.approx([value], rel=0, abs=0, nan_ok=True)


def test_nan_value_is_unknown_and_the_rest_is_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, DECODE.replace("812.44", "nan") + "\n" + DECODE + "\n")
    assert np.isnan(column(table, "throughput")[0])
    assert column(table, "queue") == [3.0, 3.0]


def test_prefill_of_2024_and_of_today(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        "[2024-10-05 09:12:42 TP0] Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, cache hit rate: 12.50%, token usage: 0.00, #running-req: 0, #queue-req: 0\n"
        "[2026-10-05 09:12:42 TP0] Prefill batch, #new-seq: 2, #new-token: 9, #cached-token: 5, full token usage: 0.10, mamba usage: 0.20, #running-req: 0, #queue-req: 0, #pending-token: 4, cuda graph: False, input throughput (token/s): 99.5\n",
    )
    columns = table.series["prefill"].columns
    assert columns["cache_hit_rate"][0] == 12.5
    assert columns["new_tokens"].tolist() == [7.0, 9.0]
    assert columns["mamba_usage"][1] == 0.2
    assert columns["input_throughput"][1] == 99.5


def test_ranks_of_every_axis(tmp_path: Path) -> None:
    prefixes = ["TP0", "TP13", "DP3 TP3 EP3", "PP1 ATTN_CP2 TP1", "DP0 PP1 ATTN_CP0 MOE_DP0 TP3 EP3"]
    table = table_of(
        tmp_path,
        "".join(f"[2026-05-04 10:00:02 {p}] hello world\n" for p in prefixes)
        + "[2026-05-04 10:00:02] none\n[gpu=5] old\n[10:00:03 TP7] time alone\n",
    )
    assert [str(table.rank_of(i)) for i in range(len(table))] == [*prefixes, "None", "TP5", "TP7"]


def test_headers_of_every_generation(tmp_path: Path) -> None:
    lines = {
        "[2026-05-04 10:00:02] WARNING model_config.py:955: odd dtype": ("odd dtype", "warning"),
        "[2026-05-04 10:00:02 TP0] INFO server.py:9: fine": ("fine", "info"),
        "[2026-05-04 10:00:02.250 TP0] plain": ("plain", "message"),
        "2026-05-04 10:00:02,250 - sglang - ERROR - bad": ("bad", "error"),
        "2026-05-04 10:00:02 | WARNING | a.b:c:12 - hm": ("hm", "warning"),
        "INFO 05-04 10:00:02 [config.py:12] hello": ("hello", "info"),
        "[rank3]:[E504 10:00:02.25 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout": (
            None,
            "pg-watchdog",
        ),
        "[W504 10:00:02.25 socket.cpp:752] [c10d] The client socket cannot be initialized": (None, "cxx-log"),
        "2026-05-04T10:00:02.250000Z  INFO sglang_router_rs::server: src/server.rs:10: up": (None, "router"),
        "E0504 10:00:02.250000 4711 tcp_transport.cpp:12] Session failed": (None, "cxx-log"),
        "node0:4101:4510 [1] NCCL WARN Cuda failure 2 'out of memory'": (None, "nccl"),
    }
    table = table_of(tmp_path, "[2026-05-04 10:00:02] start\n" + "\n".join(lines) + "\n")
    for row, (line, (text, kind)) in enumerate(lines.items(), 1):
        assert table.kind(row) == kind, line
        assert table.text(row) == (line if text is None else text)
        assert abs(float(table.time[row]) - 1_777_888_802) <= 0.26, line


def test_glued_lines_become_rows_with_their_own_columns(tmp_path: Path) -> None:
    glued = "half a wörd[2026-05-04 10:00:05 TP1] ValueError: boom"
    table = table_of(tmp_path, f"[2026-05-04 10:00:04 TP0] first\n{glued}\nafter\n{DECODE}{DECODE}\n")
    assert [table.text(i) for i in range(4)] == ["first", "half a wörd", "ValueError: boom", "after"]
    assert table.flags[2] & GLUED
    assert not table.flags[1] & GLUED
    assert table.line.tolist()[:4] == [1, 2, 2, 3]
    assert glued[table.column(2) - 1 :] == "ValueError: boom"
    assert str(table.rank_of(2)) == "TP1"
    assert table.time_of(3) == table.time_of(2)
    assert column(table, "throughput") == [812.44, 812.44]


def test_bars_with_carriage_returns_keep_first_and_last(tmp_path: Path) -> None:
    bars = "\r".join(
        f"Loading safetensors checkpoint shards: {p:3d}% Completed | {p // 25}/4 [00:0{p // 25}<00:01,  2.10it/s]"
        for p in range(0, 101, 25)
    )
    table = table_of(tmp_path, f"{bars}[2026-05-04 10:00:05 TP1] Load weight end. avail mem=1 GB\n")
    assert [table.kind(i) for i in range(len(table))] == ["progress", "progress", "stage-mark"]
    assert "  0% Completed" in table.text(0)
    assert "100% Completed" in table.text(1)
    assert table.counts["progress"] == 5


def test_bars_glued_without_carriage_return(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        "  0%|          | 0/3 [00:00<?, ?it/s]Capturing batches (bs=4):  33%|###       | 1/3 [00:01<00:02,  1.10s/it][2026-05-04 10:00:05 TP1] done\n",
    )
    assert [table.kind(i) for i in range(len(table))] == ["progress", "progress", "message"]


def test_free_text_of_requests_is_not_split(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        "[2026-05-04 10:00:05 TP1] Receive: obj=GenerateReqInput(text='see [2026-05-04 10:00:05 TP1] ValueError: no')\n",
    )
    assert len(table) == 1
    assert table.kind(0) == "request-dump"


def test_odd_bytes(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        b"\x00\x00[2026-05-04 10:00:05 TP1] nul\n\xff\xfe bad \xc3\n\n" + DECODE.encode() + b"\r\n" + DECODE.encode(),
    )
    assert table.infos[0].lines == 5
    assert column(table, "queue") == [3.0, 3.0]
    assert "bad" in table.text(len(table) - 1)


def test_endless_lines_and_tiny_chunks(tmp_path: Path) -> None:
    data = DECODE + "\n[2026-05-04 10:00:05 TP1] " + "x" * 3_000_000 + "\n[2026-05-04 10:00:06 TP1] end\n"
    whole = table_of(tmp_path, data)
    assert whole.flags[0] & TRUNCATED
    assert whole.line.tolist() == [2, 3]
    assert len(whole.text(0)) < 70_000
    assert dump(whole) == dump(table_of(tmp_path, data, chunk_bytes=4096))


def test_dates_without_year_and_midnight_without_date(tmp_path: Path) -> None:
    table = table_of(tmp_path, "[23:59:59 TP0] before\n[00:00:01 TP0] after\n")
    assert float(table.time[1] - table.time[0]) == 2.0
    table = table_of(tmp_path, "[2026-05-04 10:00:00] a\n[05-04 10:00:01] b\n")
    assert float(table.time[1] - table.time[0]) == 1.0


def test_good_requests_are_counted_and_bad_ones_are_rows(tmp_path: Path) -> None:
    lines = [
        f'[2026-05-04 10:00:05] INFO:     10.0.0.{i}:42{i} - "GET /v1/x/{"ab12" * 8}/{i} HTTP/1.1" {s} X'
        for i, s in enumerate((200, 404, 307, 503))
    ]
    table = table_of(tmp_path, "\n".join(lines) + "\n")
    assert table.line.tolist() == [2, 4]
    assert table.counts["access"] == 4


def test_context_gives_kinds(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        "/opt/x/awq.py:76: UserWarning: only\n  warnings.warn('x')\nusage: launch_server.py [-h]\n                        [--tp-size TP_SIZE]\n      MODEL\nplain words\n",
    )
    assert [table.kind(i) for i in range(len(table))] == [
        "python-warning",
        "python-warning",
        "argparse",
        "argparse",
        "argparse",
        "text",
    ]


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02\x01\x01" + bytes(100), bytes(range(256)) * 40])
def test_unusable_inputs_are_clear_errors(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        scan([path])
    assert caught.value.hint


def test_unknown_wrapper_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        table_of(tmp_path, "x\n", wrapper="parcel")


@pytest.mark.parametrize(
    "start",
    ["", "[2026-05-04 10:00:00 TP0] ", "2026-05-04 10:00:00 ", '{"log":"', "2026-05-04T10:00:00Z ", "May 04 10:00:00 "],
)
def test_hostile_lines_end_as_one_row_each(tmp_path: Path, start: str) -> None:
    """Long runs of what the grammars repeat (a pattern that is not linear would hang here)."""
    units = [
        "-",
        "a",
        "a.",
        "a:",
        " ",
        "[",
        "(",
        '"',
        "\\",
        "A_",
        "/",
        "0",
        "%|",
        "a=b ",
        "\x1b[",
        "\r",
        "| ",
        "::",
        "X=1 ",
        ": ",
        "TP0 ",
        "f0",
    ]
    lines = [start + unit * (8000 // len(unit)) + "x" for unit in units]
    table = table_of(tmp_path, "start\n" + "\n".join(lines) + "\n")
    assert table.infos[0].lines == len(units) + 1
    assert set(table.line.tolist()) <= set(range(1, len(units) + 2))
