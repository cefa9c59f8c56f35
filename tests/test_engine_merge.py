"""Several inputs of one incident: order, nodes, clocks; the order of the arguments plays no part."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from engine_dump import dump

from forensics.engine.scan import scan
from forensics.engine.table import EventTable


def lines(rank: int, hour: int, shift: int = 0) -> str:
    def at(second: int) -> str:
        return f"2026-05-04 {hour:02d}:{(second + shift) // 60:02d}:{(second + shift) % 60:02d}"

    return (
        f"[{at(1 + rank)} TP{rank}] Init torch distributed begin.\n"
        f"[{at(20)} TP{rank}] Init torch distributed ends. elapsed=19 s, mem usage=1 GB\n"
        f"[{at(30 + rank)} TP{rank}] Decode batch, #running-req: {rank}, #queue-req: 0\n"
        f"[{at(40 + rank)} TP{rank}] Memory pool end. avail mem=1 GB\nunstamped of {rank}\n"
    )


def texts(table: EventTable) -> list[str]:
    return [f"{table.rank_of(i)} {table.text(i)}" for i in range(len(table))]


def write(folder: Path, **files: str) -> list[Path]:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text, encoding="utf-8")
    return [folder / f"{name}.log" for name in files]


def test_nodes_are_interleaved_by_time(tmp_path: Path) -> None:
    paths = write(tmp_path, node0=lines(0, 10), node1=lines(1, 10))
    table = scan(paths)
    assert [t.split(".")[0] for t in texts(table)][:4] == [
        "TP0 Init torch distributed begin",
        "TP1 Init torch distributed begin",
        "TP0 Init torch distributed ends",
        "TP1 Init torch distributed ends",
    ]
    assert np.all(np.diff(table.time) >= 0)
    assert table.series["decode"].row.tolist() == [4, 4]
    assert [i.node for i in table.infos] == ["node0", "node1"]
    assert texts(table)[-3:] == ["None unstamped of 0", "TP1 Memory pool end. avail mem=1 GB", "None unstamped of 1"]


def test_order_of_arguments_plays_no_part(tmp_path: Path) -> None:
    paths = write(tmp_path, node0=lines(0, 10), node1=lines(1, 10), relaunch=lines(0, 12))
    wanted = dump(scan(paths))
    for order in itertools.permutations(paths):
        assert dump(scan(order)) == wanted


def test_skewed_clock_is_estimated_and_taken_off(tmp_path: Path) -> None:
    paths = write(tmp_path, node0=lines(0, 10), node1=lines(1, 10, shift=600))
    table = scan(paths)
    assert [i.clock_skew_s for i in table.infos] == [0.0, 600.0]
    assert texts(table)[1] == "TP1 Init torch distributed begin."


def test_launches_follow_each_other(tmp_path: Path) -> None:
    paths = write(tmp_path, b=lines(0, 9), a=lines(0, 11))
    table = scan(paths)
    assert [Path(i.path).name for i in table.infos] == ["b.log", "a.log"]
    assert table.source.tolist() == [0] * 4 + [1] * 4


def test_node_rank_inside_the_log_names_the_node(tmp_path: Path) -> None:
    head = "[2026-05-04 10:00:00] server_args=ServerArgs(nnodes=2, node_rank={})\n"
    table = scan(write(tmp_path, x=head.format(1) + lines(1, 10), y=head.format(0) + lines(0, 10)))
    assert sorted(str(i.node) for i in table.infos) == ["node0", "node1"]
    assert len(set(table.source[:4].tolist())) == 2


def test_same_rank_on_two_nodes_carries_its_node(tmp_path: Path) -> None:
    table = scan(write(tmp_path, node0=lines(0, 10), node1=lines(0, 10)))
    assert [str(r) for r in table.ranks] == ["node0/TP0", "node1/TP0"]
