"""Every wrapper around the same lines gives the same messages, kinds, ranks and columns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forensics.engine.scan import scan
from forensics.engine.table import EventTable
from forensics.schema.options import Options

LINES = [
    "[2026-05-04 10:00:00] server_args=ServerArgs(model_path='org/m', tp_size=2)",
    "[2026-05-04 10:00:01 TP0] Init torch distributed begin.",
    "[2026-05-04 10:00:01 TP1] Init torch distributed begin.",
    "[2026-05-04 10:00:09 TP1] Decode batch, #running-req: 12, #token: 3456, token usage: 0.12, cuda graph: True, gen throughput (token/s): 812.44, #queue-req: 0",
    "[2026-05-04 10:00:10 TP11] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/opt/x/scheduler.py", line 31, in run',
    "    self.step()",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "",
    '[2026-05-04 10:00:12] INFO:     10.0.0.1:4242 - "POST /generate HTTP/1.1" 503 Service Unavailable',
]
KINDS = ["server-args", "stage-mark", "stage-mark", "traceback-head", "frame", "frame-source", "exception", "access"]


def docker_json(i: int, line: str) -> str:
    return json.dumps(
        {"log": line + "\n", "stream": "stderr", "time": f"2026-05-04T08:00:{i:02d}.123456789Z"}, ensure_ascii=True
    )


WRAPPERS = {
    "plain": lambda i, s: s,
    "compose": lambda i, s: f"sglang-1  | {s}",
    "docker-json": docker_json,
    "cri": lambda i, s: f"2026-05-04T08:00:{i:02d}.123456789Z stderr F {s}",
    "journald": lambda i, s: f"May 04 10:00:{i:02d} gpu-host python[4711]: {s}",
    "journald-json": lambda i, s: json.dumps(
        {"__REALTIME_TIMESTAMP": str(1_777_881_600_000_000 + i), "_PID": "4711", "MESSAGE": s}
    ),
    "ray": lambda i, s: f"(SGLangActor pid=4123, ip=10.0.0.3) {s}",
    "ray-colour": lambda i, s: f"\x1b[36m(SGLangActor pid=4123)\x1b[0m {s}",
    "torchrun": lambda i, s: f"[default{i % 2}]:{s}",
    "slurm": lambda i, s: f"{i % 4}: {s}",
    "pdsh": lambda i, s: f"gpu-node-{i % 12}: {s}",
    "stern": lambda i, s: f"sglang-7d9fb sglang {s}",
    "supervisor": lambda i, s: f"<6>May 4 launcher/out[{100 + i}] >> {s}",
    "kubectl": lambda i, s: f"[pod/sglang-0/server] {s}",
    "logger": lambda i, s: f"2026-05-04 08:00:{i:02d},{100 + i} - __main__ - {('INFO', 'ERROR')[i % 7 == 3]} - {s}",
    "gcp": lambda i, s: f"2026-05-04T08:00:{i:02d}.123Z {s}",
    "logfmt": lambda i, s: f'time="2026-05-04T08:00:{i:02d}Z" level=info msg={json.dumps(s)}',
    "ansi": lambda i, s: f"\x1b[32m{s}\x1b[0m",
    "crlf": lambda i, s: s + "\r",
}


def write(folder: Path, lines: list[str], name: str = "server.log") -> Path:
    path = folder / name
    path.write_bytes("\n".join(lines).encode() + b"\n")
    return path


def kinds(table: EventTable) -> list[str]:
    return [table.kind(i) for i in range(len(table))]


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapper_is_taken_off(tmp_path: Path, name: str) -> None:
    table = scan([write(tmp_path, [WRAPPERS[name](i, s) for i, s in enumerate(LINES)])])
    assert kinds(table) == KINDS
    assert table.text(1) == "Init torch distributed begin."
    assert table.text(6) == "RuntimeError: CUDA error: an illegal memory access was encountered"
    assert table.text(5) == "    self.step()"
    assert [str(table.rank_of(i)) for i in range(4)] == ["None", "TP0", "TP1", "TP11"]
    assert table.time_of(6) == 1_777_888_810.0
    decode = table.series["decode"]
    assert decode.columns["throughput"].tolist() == [812.44]
    assert decode.columns["tokens"].tolist() == [3456.0]
    assert decode.columns["cuda_graph"].tolist() == [1.0]
    assert decode.row.tolist() == [3]
    raw = table.raw(1).decode().rstrip("\r")
    assert raw[table.column(1) - 1 :].startswith("Init torch")


def test_wrapper_names_are_reported(tmp_path: Path) -> None:
    lines = [WRAPPERS["compose"](i, s) for i, s in enumerate(LINES)] + [
        WRAPPERS["cri"](i, s) for i, s in enumerate(LINES)
    ]
    table = scan([write(tmp_path, lines)])
    assert table.infos[0].wrappers == ["compose", "cri"]
    assert kinds(table) == KINDS * 2


def test_forced_wrapper_admits_no_other(tmp_path: Path) -> None:
    path = write(tmp_path, [f"sglang-1  | {LINES[1]}"])
    assert kinds(scan([path], Options(wrapper="compose"))) == ["stage-mark"]
    assert kinds(scan([path], Options(wrapper="none"))) == ["text"]


def test_numbered_lines_are_no_slurm_wrapper_unless_all_are(tmp_path: Path) -> None:
    table = scan([write(tmp_path, [*LINES, "3: three is a number"])])
    assert table.text(len(table) - 1) == "3: three is a number"


def test_cri_partial_lines_are_joined(tmp_path: Path) -> None:
    stamp = "2026-05-04T08:00:00.1Z stderr"
    lines = [
        f"{stamp} P [2026-05-04 10:00:00 TP0] Load weight",
        f"{stamp} P  end. type=Llama",
        f"{stamp} F ForCausalLM, avail mem=3 GB",
        f"{stamp} F [2026-05-04 10:00:01 TP0] Memory pool end. avail mem=1 GB",
    ]
    path = write(tmp_path, lines)
    for chunk in (64, 200, 1 << 20):
        table = scan([path], Options(chunk_bytes=chunk))
        assert kinds(table) == ["stage-mark", "stage-mark"]
        assert table.text(0) == "Load weight end. type=LlamaForCausalLM, avail mem=3 GB"
        assert table.line.tolist() == [1, 4]
        assert table.infos[0].lines == 4


def test_docker_json_escapes_and_partial(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "log": '[2026-05-04 10:00:00 TP0] path "C:\\x"\tcafé \x1b[31mred\x1b[0m ',
                "stream": "stdout",
                "time": "2026-05-04T08:00:00Z",
            }
        ),
        json.dumps({"log": "and the rest\n", "stream": "stdout", "time": "2026-05-04T08:00:00Z"}),
    ]
    table = scan([write(tmp_path, lines)])
    assert table.text(0) == 'path "C:\\x"\tcafé red and the rest'
    assert len(table) == 1


def test_json_message_wider_than_latin1(tmp_path: Path) -> None:
    line = json.dumps(
        {"log": "[2026-05-04 10:00:00 TP0] 東京 Decode\n", "stream": "stdout", "time": "2026-05-04T08:00:00Z"}
    )
    assert scan([write(tmp_path, [line])]).text(0) == "東京 Decode"


def test_outer_time_counts_when_nobody_else_stamps(tmp_path: Path) -> None:
    lines = [f"2026-05-04T08:00:{i:02d}.500Z stdout F something happened" for i in range(3)]
    table = scan([write(tmp_path, lines)])
    assert np.diff(table.time).tolist() == [1.0, 1.0]
    assert table.time_of(0) == 1_777_881_600.5


def test_newest_first_export_is_read_from_the_end(tmp_path: Path) -> None:
    lines = [f"2026-05-04T08:00:{i:02d}.5Z {s}" for i, s in enumerate(LINES) if s]
    table = scan([write(tmp_path, lines[::-1])])
    assert kinds(table) == KINDS
    assert table.line.tolist() == sorted(table.line.tolist(), reverse=True)
    assert table.infos[0].notes == ["newest line first: read from the end"]
    assert table.series["decode"].row.tolist() == [3]


@pytest.mark.parametrize("prefix", ["sgl-0 server ", "[pod/sgl-0/server] ", "gpu-node-3: ", "sglang-1  | ", "> ", ""])
def test_a_start_that_dies_without_any_log_header_is_read_behind_its_wrapper(tmp_path: Path, prefix: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/x/server_args.py", line 812, in prepare_server_args',
        "    return ServerArgs.from_cli_args(raw)",
        '  File "/opt/x/model_config.py", line 402, in __init__',
        "    raise ValueError(msg)",
        "ValueError: User-specified context_length (9000) is greater than the derived context_length (4000).",
    ]
    table = scan([write(tmp_path, [prefix + line for line in lines])], Options())
    assert [table.kind(row) for row in range(len(table))][-1] == "exception"
    assert table.text(len(table) - 1).startswith("ValueError")


def test_a_stamp_before_the_programs_own_header_leaves_the_level_to_the_message(tmp_path: Path) -> None:
    line = "[2026-05-04 10:00:00] ERROR:    [Errno 98] Address already in use"
    plain = scan([write(tmp_path, [line], "a.log")])
    stamped = scan([write(tmp_path, [f"2026-05-04T08:00:00.123456789Z {line}"], "b.log")])
    assert (plain.kind(0), plain.text(0)) == (stamped.kind(0), stamped.text(0))
