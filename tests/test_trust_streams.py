"""Streams that are closed, odd or of another language; inputs and outputs that are no plain files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forensics.ingest.inputs import open_inputs
from forensics.output.atomic import write_atomic

LOG = Path(__file__).parent.parent / "samples" / "cases" / "a-fp8-model-on-a100" / "log.txt"
CALL = f"'{sys.executable}' -m forensics analyze"


def shell(command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", command], env={**os.environ, **env}, capture_output=True, timeout=60)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("options", ["-f json", "--quiet"])
def test_closed_streams_are_no_bug(closed: str, options: str) -> None:
    done = shell(f"{CALL} '{LOG}' {options} {closed}")
    assert done.returncode == 1
    assert b"a bug in" not in done.stdout + done.stderr


@pytest.mark.skipif(not Path(os.devnull).is_char_device(), reason="the null device of this machine is a plain file")
def test_standard_input_that_is_closed_is_empty() -> None:
    done = shell(f"{CALL} - <&-")
    assert done.returncode == 2
    assert b"is empty" in done.stderr


def test_a_terminal_of_few_characters_gets_a_report_and_programs_get_utf8() -> None:
    text = shell(f"{CALL} '{LOG}'", PYTHONIOENCODING="ascii")
    assert text.returncode == 1
    assert text.stdout.isascii()
    told = shell(f"{CALL} '{LOG}' -f json", PYTHONIOENCODING="ascii")
    assert told.stdout == shell(f"{CALL} '{LOG}' -f json", PYTHONIOENCODING="utf-8").stdout
    assert json.loads(told.stdout.decode())["schema"] == "1"


def test_errors_are_json_however_json_was_asked_for(tmp_path: Path) -> None:
    for asked in ("--format json", "--format=json", "-f json", "-fjson"):
        done = shell(f"{CALL} '{tmp_path}/none.log' {asked}")
        assert done.returncode == 2
        assert "no such file" in json.loads(done.stdout)["problems"][0]["message"]


def test_a_pipe_with_a_name_is_read_as_a_stream(tmp_path: Path) -> None:
    pipe = tmp_path / "server.log"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(LOG.read_bytes()))
    writer.start()
    (source,) = open_inputs([str(pipe)]).sources
    writer.join()
    assert source.pread(0, source.size) == LOG.read_bytes()
    source.close()


def test_a_report_into_a_pipe_or_an_open_file_replaces_neither(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, "report")
    reader.join()
    assert got == [b"report"]
    assert pipe.is_fifo()
    with (tmp_path / "open").open("wb") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_atomic(link, "report")
    assert link.is_symlink()
    assert (tmp_path / "open").read_bytes() == b"report"


def test_a_link_that_leads_where_this_user_may_not_look_is_passed_over() -> None:
    with TemporaryDirectory() as name:
        folder, closed = Path(name), Path(name, "closed")
        closed.mkdir()
        folder.chmod(0o755)
        for place in (folder / "server.log", closed / "other.log"):
            place.write_bytes(LOG.read_bytes())
        (folder / "linked.log").symlink_to(closed / "other.log")
        closed.chmod(0)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(65534)
            opened = open_inputs([name]).sources
        finally:
            os.seteuid(user)
            closed.chmod(0o700)
        assert [source.name for source in opened] == [str(folder / "server.log")]
