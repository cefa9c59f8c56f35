"""Masking, measured: no secret of the listed kinds gets out, and what a diagnosis needs stays word for word."""

import csv
import io
import json
import re
import sqlite3

import pytest
from secrets_corpus import FORMS, KEEP, PROMPTS, cases

from forensics.cli.main import run
from forensics.output.formats import names
from forensics.output.mask import MASK, LineMasker, mask

PROMPT = "my neighbour Xanthippe Quarles owes me 300 florins \\' and more"
PIECES = ("Xanthippe", "Quarles", "florins")


def masked(text: str) -> str:
    hide = LineMasker()
    return "\n".join(hide(line) for line in text.split("\n"))


@pytest.mark.parametrize("seed", range(4))
def test_no_secret_of_the_corpus_gets_out(seed):
    found = list(cases(seed, rounds=3))
    leaked = [
        c for c in found if c.secret in masked(c.text) or (len(c.secret) > 24 and c.secret[8:24] in masked(c.text))
    ]
    assert len(found) > 2000
    assert not leaked, f"{len(leaked)} of {len(found)}: {leaked[:5]}"


@pytest.mark.parametrize("text", KEEP)
def test_what_a_diagnosis_needs_stays_word_for_word(text):
    assert mask(text) == text


@pytest.mark.parametrize("text", KEEP)
def test_it_stays_in_the_lines_of_the_program_too(text):
    line = f"[2026-03-01 10:00:00 DP1 TP3] {text}"
    assert mask(line) == line


@pytest.mark.parametrize("place", sorted(PROMPTS))
def test_what_users_wrote_is_hidden(place):
    text = PROMPTS[place].format(p=PROMPT)
    assert not any(piece in mask(text) for piece in PIECES)
    assert not any(piece in mask(f"[2026-03-01 10:00:00] {text}") for piece in PIECES)


def test_masked_text_keeps_its_quotes_and_stays_masked():
    text = "ServerArgs(api_key='x1', tp_size=8, password=\"y2\")"
    assert mask(text) == "ServerArgs(api_key='[masked]', tp_size=8, password=\"[masked]\")"
    for case in cases(9):
        assert mask(mask(case.text)) == mask(case.text)


def test_a_private_key_is_hidden_line_by_line_to_its_last_line():
    rows = ["-----BEGIN RSA PRIVATE KEY-----", "short1", "Zm9v", "-----END RSA PRIVATE KEY-----", "after"]
    hide = LineMasker()
    assert [hide(row) for row in rows] == [MASK, MASK, MASK, MASK, "after"]


@pytest.fixture(scope="module")
def incident(tmp_path_factory):
    """A crash whose lines hold secrets and prompts everywhere, and the secrets."""
    folder = tmp_path_factory.mktemp("masking")
    lines = [
        "+ HF_TOKEN=hf_envTOKENabcdefABCDEF123456 python3 -m sglang.launch_server --model-path /m --tp 2 --api-key flagKEY9",
        "[2026-03-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=2, api_key='argsKEY7', admin_api_key='adminKEY8')",
        "[2026-03-01 10:00:01 TP0] Load weight begin. avail mem=78.10 GB",
    ]
    secrets = ["hf_envTOKENabcdefABCDEF123456", "flagKEY9", "argsKEY7", "adminKEY8"]
    for case in cases(5):
        lines += [f"[2026-03-01 10:00:02 TP1] {line}" if line == case.text else line for line in case.text.split("\n")]
        secrets.append(case.secret)
    lines += [f"[2026-03-01 10:00:03] {text.format(p=PROMPT)}" for text in PROMPTS.values()]
    lines += [
        "[2026-03-01 10:00:04 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/sglang/srt/model_executor/model_runner.py", line 20, in forward',
        f"    self.call(api_key='srcKEY5', prompt='{PROMPT}')",
        f"RuntimeError: CUDA error: an illegal memory access was encountered api_key='errKEY6' prompt='{PROMPT}'",
        f"ValueError: password=tailKEY4 for bob@corp.example.org {PROMPTS['chat'].format(p=PROMPT)}",
        "[2026-03-01 10:00:05] Received sigquit from a child process. It usually means the child failed.",
        "Killed",
    ]
    path = folder / "server.log"
    path.write_text("\n".join(lines) + "\n")
    return path, [*secrets, "srcKEY5", "errKEY6", "tailKEY4", "bob@corp"]


def leaks(text: str, secrets: list[str]) -> list[str]:
    return [s for s in (*secrets, *PIECES) if s in text]


@pytest.fixture
def call(capsys):
    def one(*argv: str) -> tuple[int, str]:
        capsys.readouterr()
        code = run(list(argv))
        out = capsys.readouterr()
        return code, out.out + out.err

    return one


@pytest.mark.parametrize("format", names())
def test_every_format_is_masked(format, incident, call):
    path, secrets = incident
    code, out = call("analyze", "-v", "--format", format, str(path))
    assert code == 1
    assert not leaks(out, secrets)
    assert "/m" in out or format in ("gcc", "github", "junit", "sarif")


def test_the_other_commands_are_masked(incident, call, tmp_path):
    path, secrets = incident
    assert not leaks(call("events", str(path))[1], secrets)
    assert not leaks(call("events", "--format", "csv", str(path))[1], secrets)
    assert not leaks(call("coverage", "--top", "5000", str(path))[1], secrets)
    assert not leaks(call("series", str(path))[1], secrets)
    assert not leaks(call("explain", "cuda-illegal-memory-access", "--log", str(path))[1], secrets)
    for line in (1, 2, 4, 5, path.read_text().count("\n") - 4, path.read_text().count("\n") - 3):
        assert not leaks(call("explain", f"{path}:{line}")[1], secrets)
    assert call("events", "--format", "sqlite", "-o", str(tmp_path / "e.db"), str(path))[0] == 0
    rows = sqlite3.connect(tmp_path / "e.db").execute("select * from events").fetchall()
    assert len(rows) > 100
    assert not leaks(repr(rows), secrets)


def test_a_bundle_is_masked_and_keeps_every_line(incident, call, tmp_path):
    import tarfile

    import zstandard

    path, secrets = incident
    code, out = call("collect", "--log", str(path), "-o", str(tmp_path / "b.tar.zst"))
    assert code == 0, out
    raw = (tmp_path / "b.tar.zst").read_bytes()
    data = zstandard.ZstdDecompressor().stream_reader(raw).read()
    assert not [s for s in (*secrets, *PIECES) if s.encode() in data]
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        log = next(m for m in archive.getmembers() if m.name.startswith("logs/"))
        copied = archive.extractfile(log).read()
    assert copied.count(b"\n") == path.read_bytes().count(b"\n")


def test_history_holds_no_secret(incident, tmp_path):
    from forensics.analysis import analyze
    from forensics.history import History

    path, secrets = incident
    history = History(tmp_path / "h.db")
    history.add_report(analyze([str(path)]), "f", 1.0)
    assert len(history.analyses()) == 1
    history.close()
    stored = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert not [s for s in (*secrets, *PIECES) if s.encode() in stored]


def test_no_mask_shows_everything_and_says_so_in_its_help(incident, call):
    path, _ = incident
    assert "argsKEY7" in call("analyze", "--no-mask", "--format", "json", str(path))[1]
    assert "hf_envTOKENabcdefABCDEF123456" in call("events", "--no-mask", str(path))[1]
    for command in ("analyze", "events"):
        assert "as they stand in the log" in re.sub(r"[\s│]+", " ", call(command, "--help")[1])


def test_own_patterns_of_forensics_toml_hide_too(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "forensics.toml").write_text('[privacy]\nsecrets = ["tok-[0-9a-f]{8}"]\n')
    (tmp_path / "a.log").write_text(
        "[2026-03-01 10:00:01 TP0] Load weight begin. avail mem=78.10 GB\n"
        "[2026-03-01 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/a.py", line 20, in forward\nValueError: bad tok-0123abcd here\n'
    )
    for argv in (("analyze", "-v"), ("analyze", "--format", "json"), ("events",), ("coverage",), ("explain",)):
        target = "a.log:4" if argv[0] == "explain" else "a.log"
        code, out = call(*argv, target)
        assert code in (0, 1), out
        assert "0123abcd" not in out, argv
    json.loads(call("analyze", "--format", "json", "a.log")[1])
    assert csv.DictReader(io.StringIO(call("events", "--format", "csv", "a.log")[1])).fieldnames


def test_the_corpus_has_every_listed_kind():
    assert {"hugging face", "openai", "aws id", "google", "jwt", "e-mail"} <= set(FORMS)
    assert {"private key"} <= {c.kind for c in cases(0)}
