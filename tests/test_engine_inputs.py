"""Names of inputs: files, folders, globs, rotated sets, compressed and unusable ones."""

from __future__ import annotations

import gzip
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from forensics.engine.scan import scan
from forensics.errors import InputError
from forensics.ingest import folder, inputs, spool
from forensics.ingest.inputs import expand, open_inputs
from forensics.ingest.sources import node_hint

TEXT = b"[2026-05-04 10:00:01 TP0] hello\n"


def names(place: Path, *given: str) -> list[str]:
    return [Path(s.name).name for s in open_inputs([str(place / i) for i in given]).sources]


def test_folder_takes_log_like_files_and_reports_the_rest_never(tmp_path: Path) -> None:
    for name in (
        "server.log",
        "node1/out.txt",
        "server.log.2.gz",
        "model.safetensors",
        ".hidden/x.log",
        "stderr",
        "notes.md",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(TEXT) if name.endswith("gz") else TEXT)
    assert sorted(names(tmp_path, "")) == ["out.txt", "server.log", "server.log.2.gz", "stderr"]


def test_folder_takes_json_only_where_it_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text('{"MESSAGE": "hello"}\n{"MESSAGE": "again"}\n')
    (tmp_path / "config.json").write_text('{\n "architectures": ["LlamaForCausalLM"]\n}\n')
    (tmp_path / "list.json").write_text('["a", "b"]\n')
    assert names(tmp_path, "") == ["export.json"]
    assert names(tmp_path, "config.json") == ["config.json"]  # named by itself it is taken


def test_rotated_set_is_oldest_first_whatever_the_order(tmp_path: Path) -> None:
    for name in ("server.log", "server.log.1", "server.log.2.gz", "server.log.10.zst"):
        data = (
            gzip.compress(TEXT) if name.endswith("gz") else zstandard.compress(TEXT) if name.endswith("zst") else TEXT
        )
        (tmp_path / name).write_bytes(data)
    wanted = ["server.log.10.zst", "server.log.2.gz", "server.log.1", "server.log"]
    assert names(tmp_path, "server.log", "server.log.1", "server.log.2.gz", "server.log.10.zst") == wanted
    assert names(tmp_path, "server.log*") == wanted


def test_one_bad_input_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(TEXT)
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "pic.log").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(500))
    inputs = open_inputs([str(tmp_path / n) for n in ("a.log", "empty.log", "pic.log", "gone.log")])
    assert [Path(s.name).name for s in inputs.sources] == ["a.log"]
    assert sorted(p.code for p in inputs.problems) == ["input-binary", "input-empty", "input-missing"]
    assert all(p.hint and p.path for p in inputs.problems)


@pytest.mark.parametrize("name", ["gone.log", "*.nothing", ""])
def test_nothing_usable_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        open_inputs([str(tmp_path / name)])
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_no_names_at_all() -> None:
    with pytest.raises(InputError):
        open_inputs([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(TEXT)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        open_inputs([str(path)])


def test_content_decides_compression_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(gzip.compress(TEXT))
    (tmp_path / "b.gz").write_bytes(TEXT)
    inputs = open_inputs([str(tmp_path / "a.log"), str(tmp_path / "b.gz")])
    assert [s.compression for s in inputs.sources] == ["gz", None]
    assert [s.pread(0, 100) for s in inputs.sources] == [TEXT, TEXT]


def test_damaged_archive_is_read_up_to_the_damage(tmp_path: Path) -> None:
    data = os.urandom(40_000).hex().encode() + b"\n" + TEXT * 10
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(data)[:-400])
    source = open_inputs([str(tmp_path / "a.log.gz")]).sources[0]
    assert source.size > 0
    assert "ends early" in source.notes[0]


def test_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_RATIO_FLOOR", 1 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(InputError, match="bomb"):
        open_inputs([str(tmp_path / "bomb.gz")])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_standard_input_plain_or_compressed(pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(TEXT))))  # type: ignore[operator]
    source = open_inputs(["-"]).sources[0]
    assert (source.name, source.pread(0, 99)) == ("-", TEXT)


def test_growing_file_is_read_up_to_its_size_at_open(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(TEXT)
    inputs = open_inputs([str(path)])
    path.write_bytes(TEXT * 3)
    assert scan(inputs).infos[0].lines == 1


def test_file_truncated_after_open_is_no_endless_loop(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(TEXT * 3)
    inputs = open_inputs([str(path)])
    path.write_bytes(TEXT)
    assert scan(inputs).infos[0].lines == 1


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("log.node1.txt", "node1"),
        ("node-0/server.log", "node0"),
        ("worker_3.log", "node3"),
        ("server.log", None),
        ("anode7x.log", None),
        ("run/noderank2.log", "node2"),
    ],
)
def test_node_hint(name: str, node: str | None) -> None:
    assert node_hint(name) == node


SERVER = "[2026-01-05 10:00:00 TP0] server_args=ServerArgs(model_path='/m')\n"


def test_of_a_huge_folder_the_logs_that_speak_of_a_server_are_read_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MAX_LOGS", 4)
    for number in range(4):
        (tmp_path / f"boot{number}.log").write_text("systemd: started a unit\n")
    assert len(open_inputs([str(tmp_path)]).sources) == 4, "as many as one incident has are taken as they are"
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "rank.log").write_text(SERVER)
    (tmp_path / "app" / "late.log").write_text("x\n" * 50_000 + SERVER)
    with gzip.open(tmp_path / "app" / "old.log.1.gz", "wt") as file:
        file.write(SERVER)
    found = open_inputs([str(tmp_path)])
    assert [Path(s.name).name for s in found.sources] == ["late.log", "old.log.1.gz", "rank.log"]
    assert [(p.code, p.path, p.message) for p in found.problems] == [
        ("input-huge-folder", str(tmp_path), "of 7 files with a log's name 3 show a server's words, and the others were "
         "not read"),
    ]  # fmt: skip
    assert "forensics fleet" in found.problems[0].hint
    for number in range(3):
        (tmp_path / "app" / f"rank{number}.log").write_text(SERVER)
    found = open_inputs([str(tmp_path)])
    assert len(found.sources) == 4 and found.problems[0].message.endswith("; of 6 logs the first 4 were read")


def test_of_a_folder_that_is_too_large_to_walk_the_upper_levels_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "deeper" / "lost.log").write_text(SERVER)
    (tmp_path / "z.log").write_text(SERVER)
    for inside in ("node_modules", ".git"):
        (tmp_path / inside).mkdir()
        (tmp_path / inside / "x.log").write_text(SERVER)
    assert names(tmp_path, ".") == ["lost.log", "z.log"]
    monkeypatch.setattr(folder, "MAX_ENTRIES", 4)
    found = open_inputs([str(tmp_path)])
    assert [Path(s.name).name for s in found.sources] == ["z.log"]
    assert "4 files and folders were looked at" in found.problems[0].message


def test_a_huge_folder_without_a_servers_log_is_an_error_that_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MAX_LOGS", 2)
    for number in range(3):
        (tmp_path / f"boot{number}.log").write_text("systemd: started a unit\n")
    with pytest.raises(InputError, match="of 3 files with a log's name none shows a server's words") as caught:
        open_inputs([str(tmp_path)])
    assert "name the folder of one incident" in caught.value.hint


def test_the_kernels_folders_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_ENTRIES", 3000)
    monkeypatch.setattr(folder, "MAX_LOGS", 100_000)
    with suppress(InputError):
        for path in expand("/").logs:
            assert path.parts[1] not in ("proc", "sys", "dev")


def test_a_glob_with_too_many_files_says_how_many_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_FILES", 2)
    for number in range(3):
        (tmp_path / f"rank{number}.log").write_text(SERVER)
    found = open_inputs([str(tmp_path / "*.log")])
    assert len(found.sources) == 2
    assert [p.message for p in found.problems] == ["of 3 files that match the first 2 were read"]
