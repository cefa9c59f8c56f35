"""`forensics collect` and bundles as inputs: what is in them, what is used, what is refused."""

import io
import json
import os
import subprocess
import sys
import tarfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import zstandard

from forensics.analysis import analyze
from forensics.collect import host
from forensics.collect.ask import ask, join
from forensics.collect.bundle import Wish, write_bundle
from forensics.collect.logs import copied, window_of
from forensics.errors import InputError
from forensics.ingest.bundle import is_bundle, open_bundle, read_member
from forensics.ingest.folder import is_log_name
from forensics.ingest.inputs import open_inputs

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"
CHECK_ENV = ROOT / "samples/cases/saga/check_env.txt"
START = "[2026-06-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, dtype='auto', device='cuda')\n"
KILLED = (
    START
    + "[2026-06-01 10:00:05 TP0] Init torch distributed begin.\n[2026-06-01 10:00:09 TP0] Load weight begin. "
    + "avail mem=70.10 GB\n[2026-06-01 10:00:09 TP1] Load weight begin. avail mem=70.10 GB\n"
    + "[2026-06-01 10:01:00] Subprocess scheduler_1 (pid=812) crashed with exit code -9. Triggering SIGQUIT for "
    + "cleanup...\n"
)
OOM = (
    "2026-06-01T10:00:58+0000 box kernel: python3 invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0\n"
    "2026-06-01T10:00:58+0000 box kernel: Out of memory: Killed process 812 (python3) total-vm:91234kB, "
    "anon-rss:80000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:200kB oom_score_adj:0\n"
)


def pack(path, members):
    """A tar.zst from (TarInfo or name, bytes) pairs."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for info, data in members:
            info = tarfile.TarInfo(info) if isinstance(info, str) else info
            info.size = info.size or len(data)
            archive.addfile(info, io.BytesIO(data) if info.isreg() else None)
    path.write_bytes(zstandard.ZstdCompressor().compress(raw.getvalue()))
    return path


def kind(name, type_, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = type_, link
    return info


# -- collecting --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collect")
    log, bundle = folder / "server.log", folder / "b.tar.zst"
    log.write_bytes(
        CRASH.read_bytes() + b"[2026-11-30 09:58:00] api_key='abcdef123456' Authorization: Bearer abcdefgh1234\n"
    )
    variables = {
        "SGLANG_ENABLE_JIT_DEEPGEMM": "0",
        "NCCL_DEBUG": "INFO",
        "HF_TOKEN": "hf_abcdefghijklmnopqrst",
        "MY_DATA": "x",
    }
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **variables},
    )  # fmt: skip
    child.stdout.readline()
    try:
        words = ["collect", "--log", str(log), "-o", str(bundle), "--pid", str(child.pid), "--python", sys.executable]
        done = subprocess.run([sys.executable, "-m", "forensics", *words], capture_output=True, text=True)
    finally:
        child.communicate()
    assert done.returncode == 0, done.stderr
    return bundle, done.stdout


def test_parts_that_are_missing_say_why(collected):
    manifest = json.loads(read_member(f"{collected[0]}!/manifest.json", 1 << 20))
    parts = {p["name"]: p for p in manifest["parts"]}
    assert set(parts) == {
        "packages.txt", "check_env.txt", "nvidia-smi.txt", "topology.txt", "environment.txt", "command.txt",
        "limits.txt", "host.txt", "kernel.txt",
    }  # fmt: skip
    assert all(p["ok"] or p["problem"] for p in parts.values())
    assert parts["host.txt"]["ok"] and parts["limits.txt"]["ok"] and parts["packages.txt"]["ok"]
    assert manifest["logs"][0]["name"] == "logs/server.log"


def test_the_environment_is_allow_listed_and_masked(collected):
    text = read_member(f"{collected[0]}!/environment.txt", 1 << 20).decode()
    assert "env SGLANG_ENABLE_JIT_DEEPGEMM=0\n" in text
    assert "MY_DATA" not in text and "hf_abc" not in text
    assert "/dev/shm" in read_member(f"{collected[0]}!/host.txt", 1 << 20).decode()


def test_secrets_in_the_log_are_masked(collected):
    text = read_member(f"{collected[0]}!/logs/server.log", 1 << 20)
    assert b"abcdef123456" not in text and b"abcdefgh1234" not in text and b"Assertion" in text


def test_analyze_uses_all_of_a_bundle(collected):
    found = analyze([str(collected[0])])
    launch = found.launches[-1]
    assert launch.first_failure.where.path == f"{collected[0]}!/logs/server.log"
    fact = launch.facts["env.SGLANG_ENABLE_JIT_DEEPGEMM"]
    assert fact.value == "0" and fact.where.path == f"{collected[0]}!/environment.txt"


def test_a_bundle_is_not_overwritten(collected):
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "collect", "-o", str(collected[0])], capture_output=True, text=True
    )
    assert done.returncode == 2 and "exists already" in done.stderr


def test_reports_in_a_bundle_state_facts_of_the_host(tmp_path):
    members = [("manifest.json", b"{}"), ("check_env.txt", CHECK_ENV.read_bytes()), ("logs/a.log", KILLED.encode())]
    found = analyze([str(pack(tmp_path / "b.tar.zst", members))])
    facts = found.launches[0].facts
    assert facts["gpu.count"].value == 8 and facts["gpu.sm"].value == 120
    assert facts["version.transformers"].value == "5.2.0"


def test_kernel_messages_join_the_launch_of_their_time(tmp_path):
    members = [("manifest.json", b"{}"), ("kernel.txt", OOM.encode()), ("logs/a.log", KILLED.encode())]
    found = analyze([str(pack(tmp_path / "b.tar.zst", members))])
    assert len(found.launches) == 1
    assert any("kernel-oom-kill" in f.signals for f in found.launches[0].failures)


def test_a_part_that_fails_or_hangs_does_not_spoil_the_rest():
    assert "not installed" in ask("x", ["no-such-program-here"]).problem
    late = ask("x", [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"], 2.0)
    assert "no answer" in late.problem
    wrong = ask("x", [sys.executable, "-c", "raise SystemExit('sorry')"])
    assert "exit code 1: sorry" in wrong.problem
    assert join("x", [wrong]).text == ""


def test_a_part_that_raises_is_named_in_the_manifest(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "check_env", lambda python: 1 / 0)
    write_bundle(tmp_path / "b.tar.zst", Wish(python=sys.executable))
    manifest = json.loads(read_member(f"{tmp_path}/b.tar.zst!/manifest.json", 1 << 20))
    assert any("ZeroDivisionError" in p["problem"] for p in manifest["parts"])


def test_long_logs_keep_head_and_tail(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(b"".join(b"line %06d\n" % n for n in range(10_000)))
    content, size, remark = copied(log, 2_000, masked=True)
    data = content.read()
    assert len(data) == size < 2_500
    assert data.startswith(b"line 000000\n") and data.endswith(b"line 009999\n") and "left out" in remark
    assert b"left out by forensics collect" in data


def test_kernel_messages_of_other_times_stay_out(tmp_path):
    log = tmp_path / "a.log"
    log.write_text(KILLED)
    os.utime(log, (datetime(2026, 6, 1, 10, 1).timestamp(),) * 2)
    window = window_of([log])
    line = OOM.splitlines()[0]
    assert host._placed(line, window) == line
    assert host._placed(line.replace("06-01", "05-30"), window) == ""


@pytest.mark.parametrize(("hours", "minutes"), [(2, 0), (-5, -30), (0, 0)])
def test_kernel_messages_are_put_on_the_logs_clock(tmp_path, hours, minutes):
    """The container stamps in UTC, the host's journal in its own time zone."""
    ahead = timedelta(hours=hours, minutes=minutes)
    log = tmp_path / "a.log"
    log.write_text(KILLED)
    os.utime(log, ((datetime(2026, 6, 1, 10, 1) + ahead).timestamp(),) * 2)
    window = window_of([log])
    assert window.shift == ahead
    here = (datetime(2026, 6, 1, 10, 0, 58) + ahead).isoformat()
    assert host._placed(OOM.splitlines()[0].replace("2026-06-01T10:00:58", here), window) == OOM.splitlines()[0]


def test_a_log_that_was_copied_later_tells_no_time_zone(tmp_path):
    log = tmp_path / "a.log"
    log.write_text(KILLED)
    os.utime(log, (datetime(2026, 6, 1, 13, 8).timestamp(),) * 2)
    assert window_of([log]).shift == timedelta()


def test_the_tools_of_a_gpu_host_are_used(tmp_path, monkeypatch):
    """Stand-ins that print what the real tools printed: the parts become facts and kernel messages of the launch."""
    tools = tmp_path / "bin"
    tools.mkdir()
    said = (ROOT / "samples/env/gpu-env.txt").read_text()
    (tmp_path / "smi.txt").write_text(said[said.index("+---") : said.index("Legend:")])
    (tmp_path / "oom.txt").write_text(OOM.replace("+0000", "+00:00").replace(" box kernel:", ""))
    for name, script in (
        ("nvidia-smi", f"cat {tmp_path}/smi.txt"),
        ("journalctl", "echo 'No journal files were found.' >&2; exit 1"),
        ("dmesg", f"cat {tmp_path}/oom.txt"),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    log = tmp_path / "server.log"
    log.write_text(KILLED)
    os.utime(log, (datetime(2026, 6, 1, 10, 1).timestamp(),) * 2)
    write_bundle(tmp_path / "b.tar.zst", Wish((log,), python=sys.executable))
    launch = analyze([str(tmp_path / "b.tar.zst")]).launches[0]
    assert launch.facts["gpu.name"].value == "NVIDIA H200" and launch.facts["version.driver"].value.startswith("580.")
    assert any("kernel-oom-kill" in f.signals for f in launch.failures)


# -- reading archives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ":gz"])
def test_any_archive_of_logs_is_an_input(tmp_path, suffix):
    path = tmp_path / "logs.bin"
    with tarfile.open(path, f"w{suffix}") as archive:
        archive.add(CRASH, "run/node0/server.log")
        archive.add(ROOT / "pyproject.toml", "run/pyproject.toml")
    sources = open_inputs([str(path)]).sources
    assert [s.name for s in sources] == [f"{path}!/run/node0/server.log"]
    assert sources[0].node == "node0" and sources[0].pread(0, 1 << 20) == CRASH.read_bytes()


def test_one_member_can_be_named(tmp_path):
    path = pack(tmp_path / "b.tar.zst", [("logs/a.log", b"one\n"), ("logs/b.log", b"two\n")])
    assert open_inputs([f"{path}!/logs/b.log"]).sources[0].pread(0, 9) == b"two\n"


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ("../evil.log", "out of the archive"),
        ("/etc/evil.log", "out of the archive"),
        ("logs/../../evil.log", "out of the archive"),
        ("logs\\..\\evil.log", "out of the archive"),
        (kind("logs/a.log", tarfile.SYMTYPE, "/etc/passwd"), "is a link"),
        (kind("logs/a.log", tarfile.LNKTYPE, "logs/b.log"), "is a link"),
        (kind("logs/a.log", tarfile.CHRTYPE), "device or a pipe"),
        (kind("logs/a.log", tarfile.BLKTYPE), "device or a pipe"),
        (kind("logs/a.log", tarfile.FIFOTYPE), "device or a pipe"),
    ],
)
def test_hostile_members_are_refused(tmp_path, member, words):
    path = pack(tmp_path / "b.tar.zst", [("logs/good.log", KILLED.encode()), (member, b"")])
    with pytest.raises(InputError, match=words):
        open_inputs([str(path)])
    assert not list(tmp_path.parent.glob("evil*"))


def test_a_bomb_is_refused(tmp_path):
    """300 MB of zeros in a few kilobytes."""
    info = tarfile.TarInfo("logs/a.log")
    info.size = 300 << 20
    packer = zstandard.ZstdCompressor().compressobj()
    path = tmp_path / "b.tar.zst"
    with path.open("wb") as out:
        out.write(packer.compress(info.tobuf()))
        for _ in range(300):
            out.write(packer.compress(bytes(1 << 20)))
        out.write(packer.flush())
    with pytest.raises(InputError, match="bomb"):
        open_bundle(path)


def test_a_header_without_end_is_refused(tmp_path):
    """An extended header that states a size of hundreds of megabytes would be read into memory."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 200 << 20
    packer = zstandard.ZstdCompressor().compressobj()
    path = tmp_path / "b.tar.zst"
    with path.open("wb") as out:
        out.write(packer.compress(info.tobuf(tarfile.USTAR_FORMAT)))
        for _ in range(200):
            out.write(packer.compress(bytes(1 << 20)))
        out.write(packer.flush())
    with pytest.raises(InputError, match=r"header has no end|damaged"):
        open_bundle(path)


def test_too_many_members_are_refused(tmp_path):
    path = pack(tmp_path / "b.tar.zst", [(f"logs/{n}.txt", b"") for n in range(2100)])
    with pytest.raises(InputError, match="more than"):
        open_bundle(path)


def test_of_a_cut_archive_the_readable_part_is_used(tmp_path):
    path = pack(tmp_path / "b.tar.zst", [("logs/a.log", b"".join(b"%r\n" % os.urandom(40) for _ in range(9000)))])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    sources = open_inputs([str(path)]).sources
    assert sources[0].size > 10_000 and any("damaged" in note for note in sources[0].notes)


def test_an_archive_cut_before_its_logs_is_a_clear_error(tmp_path):
    path = pack(tmp_path / "b.tar.zst", [("manifest.json", b"%r" % os.urandom(300_000)), ("logs/a.log", b"x\n")])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="damaged"):
        open_inputs([str(path)])


def test_an_archive_without_logs_says_what_it_holds(tmp_path):
    path = pack(tmp_path / "b.tar.zst", [("notes.pdf", b"x")])
    with pytest.raises(InputError, match=r"no log.*notes\.pdf"):
        open_bundle(path, is_log_name)


def test_logs_are_no_bundles(tmp_path):
    assert not is_bundle(CRASH)
    packed = tmp_path / "server.log.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(CRASH.read_bytes()))
    assert not is_bundle(packed)
    os.mkfifo(tmp_path / "pipe")
    assert not is_bundle(tmp_path / "pipe")
