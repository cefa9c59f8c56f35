"""The user's own patterns of secrets hide in every command, in bug reports, drafts, histories and run folders; a masked
line that was JSON is still JSON."""

import json
import tarfile
from pathlib import Path

import pytest
import zstandard
from secrets_corpus import KEEP, PROMPTS, cases

from forensics.cli.main import run
from forensics.output import own
from forensics.output.mask import MASK, mask
from forensics.output.mask_bytes import ByteMasker

OWN = "tok-00ff11ee22dd33cc"
TOML = '[privacy]\nsecrets = ["tok-[0-9a-f]{16}"]\n'
LOG = f"""[2026-03-01 10:00:00] server_args=ServerArgs(model_path='/m/{OWN}', tp_size=1)
[2026-03-01 10:00:01 TP0] Load weight begin. avail mem=78.10 GB
[2026-03-01 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/{OWN}.py", line 1, in f
    return {OWN}
RuntimeError: the {OWN} kernel refused
[2026-03-01 10:00:03] Received sigquit from a child process. It usually means the child failed.
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "forensics.toml").write_text(TOML)
    (tmp_path / "server.log").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    own.use(None)


def said(capsys) -> str:
    out = capsys.readouterr()
    return out.out + out.err


@pytest.mark.parametrize(
    "argv",
    [
        ["analyze", "server.log", "--detail"],
        ["analyze", "server.log", "--format", "json"],
        ["analyze", "server.log", "--format", "markdown"],
        ["events", "server.log"],
        ["coverage", "server.log"],
        ["explain", "server.log", "--line", "6"],
        ["watch", "server.log", "--once"],
        ["history", "list"],
        ["kb", "search", f"the {OWN} kernel refused"],
    ],
    ids=lambda argv: " ".join(argv[:2]),
)
def test_own_patterns_hide_in_what_commands_print(argv, place, capsys):
    run(argv)
    assert OWN not in said(capsys)


def test_own_patterns_hide_in_a_bundle(place, capsys):
    assert run(["collect", "--log", "server.log", "-o", "b.tar.zst"]) in (0, 1)
    with zstandard.open(place / "b.tar.zst", "rb") as file, tarfile.open(fileobj=file, mode="r|") as tar:
        texts = [tar.extractfile(member).read() for member in tar if member.isfile()]
    assert any(b"kernel refused" in text for text in texts)
    assert not any(OWN.encode() in text for text in texts)


def test_own_patterns_hide_in_a_draft(place, capsys):
    (place / "own").mkdir()
    (place / "forensics.toml").write_text(TOML + '[kb]\npaths = ["own"]\n')
    assert run(["analyze", "server.log", "--format", "json", "-o", "report.json"]) == 1
    assert run(["kb", "new", "--from", "report.json", "--id", "kernel-refused", "--into", "own"]) == 0
    assert OWN not in said(capsys)
    pages = [p.read_text() for p in (place / "own").rglob("*") if p.is_file()]
    assert pages and not any(OWN in text for text in pages)


def test_own_patterns_hide_in_a_bug_report(place, capsys, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError(f"while reading {OWN}")

    monkeypatch.setattr("forensics.analysis.diagnose", broken)
    assert run(["analyze", "server.log"]) == 70
    text = said(capsys)
    assert OWN not in text and MASK in text
    path = Path(text.partition("report it with ")[2].partition(" (")[0])
    assert OWN not in path.read_text() and "ZeroDivisionError" in path.read_text()
    path.unlink()


def test_a_forensics_toml_that_cannot_be_read_stops_what_would_show_text(place, capsys):
    (place / "forensics.toml").write_text("[privacy]\nsecrets = 3\n")
    for argv in (
        ["analyze", "server.log"],
        ["collect", "--log", "server.log", "-o", "b.tar.zst"],
        ["events", "server.log"],
    ):
        assert run(argv) == 2
        assert OWN not in said(capsys)
    assert not (place / "b.tar.zst").exists()


def test_own_patterns_hide_in_replies_to_agents(place):
    from forensics.agents.jail import Jail
    from forensics.agents.tools import Toolbox

    box = Toolbox(Jail(place), config=place / "forensics.toml")
    reply = box.analyze(["server.log"])
    assert OWN not in json.dumps(reply) and MASK in json.dumps(reply)


def test_own_patterns_hide_in_a_history(place):
    from forensics.history import Attempt, History

    own.use(lambda: ("tok-[0-9a-f]{16}",))
    history = History(place / "h.db")
    fields = dict.fromkeys(Attempt.__dataclass_fields__, "")
    history.add_attempt(Attempt(**{**fields, "command": f"python -m sglang.launch_server --x {OWN}"}))
    history.close()
    assert OWN.encode() not in (place / "h.db").read_bytes()


def test_the_log_in_a_run_folder_is_masked_as_it_arrives(place):
    from forensics.replay.live import LiveLog
    from forensics.schema.options import Options

    own.use(lambda: ("tok-[0-9a-f]{16}",))
    live = LiveLog(place / "run.log", Options())
    data = (LOG + "[2026-03-01 10:00:04] api_key='abcDEF123' and no newline").encode()
    for at in range(0, len(data), 37):
        live.add(data[at : at + 37])
    state = live.state(now=True)
    kept = (place / "run.log").read_bytes()
    assert OWN.encode() not in kept and b"abcDEF123" not in kept
    assert kept.count(b"\n") == data.count(b"\n") and b"kernel refused" in kept
    assert live.size == len(data)
    assert state.failed


def test_run_folders_are_their_owners_alone(tmp_path):
    from forensics.replay.folder import RunFolder

    assert RunFolder.create(tmp_path / "runs").path.stat().st_mode & 0o077 == 0


def docker(text: str) -> str:
    return json.dumps({"log": text + "\n", "stream": "stderr", "time": "2026-03-01T10:00:00.5Z"}, ensure_ascii=False)


def test_a_masked_docker_line_is_still_json_and_leaks_nothing():
    hide, leaked = ByteMasker(), []
    for case in cases(3):
        for line in case.text.split("\n"):
            kept = hide((docker(line) + "\n").encode())
            found = json.loads(kept)
            assert list(found) == ["log", "stream", "time"]
            if case.secret in found["log"]:
                leaked.append(case)
    assert not leaked, leaked[:3]


@pytest.mark.parametrize("text", [*PROMPTS.values()])
def test_prompts_in_docker_lines_are_hidden_and_the_line_stays_json(text):
    found = json.loads(ByteMasker()(docker(text.format(p="my neighbour Xanthippe \\' owes")).encode()))
    assert "Xanthippe" not in found["log"]
    assert found["time"] == "2026-03-01T10:00:00.5Z"


@pytest.mark.parametrize("text", KEEP)
def test_docker_lines_that_hold_no_secret_stay_byte_for_byte(text):
    line = docker(text).encode() + b"\n"
    assert ByteMasker()(line) == line


def test_a_private_key_in_docker_lines_is_hidden_to_its_end():
    rows = ["-----BEGIN RSA PRIVATE KEY-----", "short1", "Zm9v", "-----END RSA PRIVATE KEY-----", "after"]
    hide = ByteMasker()
    logs = [json.loads(hide((docker(row) + "\n").encode()))["log"] for row in rows]
    assert [MASK in log for log in logs] == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('{"api_key": "abcDEF123", "n": 1}', '{"api_key": "[masked]", "n": 1}'),
        ('{"a":{"password":"p4ssw0rdX"},"b":[1,"hf_abcdefghij0123456789ABCDEF"]}', None),
        ('{"api_key": null, "n": 1}', '{"api_key": null, "n": 1}'),
        ('{"log": "unfinished', None),
        ("{" * 5000 + "}" * 5000, None),
        ('{"log":"x \\ud800 api_key=\'abcDEF123\'"}', None),
    ],
)
def test_other_json_lines(line, kept):
    found = ByteMasker()(line.encode()).decode()
    assert "abcDEF123" not in found and "p4ssw0rdX" not in found and "hf_abc" not in found
    if kept is not None:
        assert found == kept
    if line.endswith("}") and not line.startswith("{{"):
        json.loads(found)


def test_masking_twice_changes_nothing(place):
    own.use(lambda: ("tok-[0-9a-f]{16}",))
    assert mask(mask(LOG)) == mask(LOG)
