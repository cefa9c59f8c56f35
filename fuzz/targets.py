# ruff: noqa: E501 (tables of words)
"""What is fuzzed: each target takes bytes, feeds one reader of untrusted data, and checks what is promised of it.

A target may raise nothing: errors of forensics/errors.py are part of the promise and end it quietly, everything else is
a crash. Seeds come from the samples, the knowledge base and the rules, so that mutation starts from real text.
"""

from __future__ import annotations

import gzip
import io
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forensics.engine.table import EventTable
    from forensics.knowledge.store import Knowledge

ROOT = Path(__file__).resolve().parent.parent
SEED_BYTES = 4000
"""A seed is cut to this: small inputs mutate faster and reach the same code."""


@dataclass(frozen=True, slots=True)
class Target:
    """`run` checks one input. `seeds` are where mutation starts, `words` what it inserts. `group` is the part of the
    program that the figures of docs/security.md count."""

    name: str
    group: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()


LOG_WORDS = (
    b"\n", b"\r", b"\x1b[31m", b"\x00", b"\xff\xfe", b"\xe2\x80\xae", b"[2026-01-05 10:00:00 TP0] ", b"[rank3]: ",
    b"Traceback (most recent call last):\n", b'  File "a.py", line 3, in f\n', b"ValueError: x\n", b"Decode batch. ",
    b"Prefill batch, ", b"#running-req: ", b"server_args=ServerArgs(", b"server_args={", b"'", b'"', b"(", b")", b"{",
    b"Assertion `x` failed.", b"NCCL WARN ", b'{"log":"', b"\\u001b", b"stdout F ", b"99999999999999999999", b"nan",
    b"The above exception was the direct cause of the following exception:\n", b"token usage: ", b"100%|", b"GPU 0: ",
)  # fmt: skip
SHELL_WORDS = (
    b"python -m sglang.launch_server ", b"--tp 8 ", b"--model-path=", b"docker run ", b"-e A=1 ", b"env B=2 ", b"'", b'"',
    b"\\", b"\n", b"$(", b")", b" && ", b" | ", b";", b"nohup ", b"sglang serve ", b"--json-model-override-args ", b"{",
)  # fmt: skip
YAML_WORDS = (
    b"---\n", b"id: x\n", b"grounds:\n  must:\n    - ", b"fix:\n  - {kind: flag, op: set, name: --a, value: b}\n", b"&a ",
    b"*a", b"<<: ", b"!!python/object ", b"|\n", b">-\n", b"? ", b": ", b"\t", b"- ", b"[", b"]", b"{", b"}", b"'", b'"',
    b"```log match line=2\n", b"```\n", b"any:\n  - '(a+)+'\n", b"captures: {n: int}\n", b"(?P<n>\\d+)", b"\xef\xbb\xbf",
)  # fmt: skip
CONDITION_WORDS = (
    b" and ", b" or ", b"not ", b"(", b")", b" before ", b" on every rank", b"count ", b" >= 3 ", b" within 60s", b" in {",
    b"}", b"args.tp_size", b"version.sglang < 0.5.10", b'"', b"~ ", b"silence > 9min", b"series throughput falls", b" - ",
    b"tried --a=b and same failure", b"absent ", b"1e999", b"a.b ", b"stage reached ", b"nan-probabilities", b"--",
)  # fmt: skip
SECRET_WORDS = (
    b"api_key='", b"Authorization: Bearer ", b"hf_", b"sk-", b"://user:pass@", b"-----BEGIN RSA PRIVATE KEY-----\n",
    b"AKIA", b"@example.org", b"prompt='", b"messages=[", b"input_ids=[", b"--api-key ", b"HF_TOKEN=", b"eyJ", b"\\'", b"'",
)  # fmt: skip


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _files(pattern: str, limit: int) -> list[bytes]:
    found = sorted(ROOT.glob(pattern))
    step = max(1, len(found) // limit)
    return [p.read_bytes()[:SEED_BYTES] for p in found[::step]][:limit]


def _log_parts() -> list[bytes]:
    """Heads and tails of sample logs: start-up at one end, the crash at the other."""
    parts = []
    for path in sorted(ROOT.glob("samples/cases/*/log.txt"))[::5]:
        data = path.read_bytes()
        parts += [data[:SEED_BYTES], data[-SEED_BYTES:]]
    return parts


def _log_lines() -> list[bytes]:
    lines = {line[:600] for part in _log_parts() for line in part.split(b"\n") if line}
    return sorted(lines)[::7]


@contextmanager
def _scanned(data: bytes) -> Iterator[EventTable]:
    from forensics.engine.scan import scan
    from forensics.ingest.inputs import open_path
    from forensics.schema.options import Options

    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(data)
        file.flush()
        source = open_path(Path(file.name))
        try:
            yield scan([source], Options(processes=1, chunk_bytes=4096, engine="numpy"))
        finally:
            source.close()


def ingest(data: bytes) -> None:
    """Any bytes as a log: opened or refused, scanned, every row readable."""
    with _scanned(data) as table:
        for row in range(min(len(table), 50)):
            table.text(row)
            span = table.span(row)
            assert 0 <= span.byte_start <= span.byte_end <= len(data)
            assert span.line >= 1
            assert span.column >= 1


def compressed(data: bytes) -> None:
    """Damaged gzip and zstandard streams."""
    import zstandard

    from forensics.ingest.spool import unpack

    inner = gzip.compress(data[8:], mtime=0) if data[:1] < b"\x80" else zstandard.compress(data[8:])
    for spot in data[1:5]:
        at = spot * len(inner) // 256
        inner = inner[:at] + bytes([spot]) + inner[at + 1 :]
    kind = "gz" if data[:1] < b"\x80" else "zst"
    handle, _, _ = unpack(io.BytesIO(inner), "x", len(inner), kind)
    handle.close()


def bundle(data: bytes) -> None:
    """A damaged or hostile bundle."""
    from forensics.ingest.inputs import open_inputs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle.tar.gz"
        path.write_bytes(data)
        for source in open_inputs([str(path)]).sources:
            source.close()


def line(data: bytes) -> None:
    """One line through the header grammar and the line grammar; read together with others it is the same."""
    from forensics.engine.crowd import Crowd
    from forensics.engine.mask import DIGITS_TO_ZERO
    from forensics.engine.record import LineReader

    reader = LineReader()
    masked = data.replace(b"\n", b" ").translate(DIGITS_TO_ZERO)
    parts = reader.read(masked.decode("latin-1"))
    crowd = Crowd(reader)
    seen = crowd.read([b"first of two", masked])
    if seen.head[1] >= 0:
        head, kind = crowd.heads[int(seen.head[1])]
        assert [(p.head, p.shape) for p in parts] == [(head, (kind, seen.shape(1)))]


def header(data: bytes) -> None:
    """Wrappers and headers: what is taken off lies inside the line."""
    from forensics.grammar.header import headers

    text = data.replace(b"\n", b" ").decode("latin-1")
    head = headers().split(text)
    assert 0 <= head.body_at <= len(text)
    assert head.end is None or head.body_at <= head.end <= len(text)


def blocks(data: bytes) -> None:
    """Multi-line blocks of any lines; rows of a block exist."""
    from forensics.grammar.blocks import find_blocks

    with _scanned(b"[2026-01-05 10:00:00 TP0] start\n" + data) as table:
        for block in find_blocks(table):
            assert block.rows
            assert 0 <= min(block.rows) <= max(block.rows) < len(table)


def server_args(data: bytes) -> None:
    """server_args dumps: places lie inside the text."""
    from forensics.grammar.server_args import read_server_args

    text = "server_args=" + _text(data)
    found = read_server_args(text)
    for argument in found.arguments if found else ():
        assert 0 <= argument.start <= argument.end <= len(text)


def command(data: bytes) -> None:
    """Shell words and launch commands: words stand in order."""
    from forensics.grammar.command import read_command, read_exports, split_words

    text = _text(data)
    at = 0
    for word in split_words(text):
        assert at <= word.start <= word.end <= len(text)
        at = word.end
    read_command(text)
    read_exports(text)


def env_report(data: bytes) -> None:
    """check_env, nvidia-smi and package lists."""
    from forensics.timeline.envreport import read_env_report

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        read_env_report(Path(file.name))


def conditions(data: bytes) -> None:
    """Conditions: a tree, or an error with a caret; what is printed parses to the same."""
    from forensics.grammar.condition_text import format_condition
    from forensics.grammar.conditions import parse_condition
    from forensics.schema.span import Span

    place = Span("kb/x.md", 3, 5)
    tree = parse_condition(_text(data), place)
    text = format_condition(tree)
    assert format_condition(parse_condition(text, place)) == text


def finding(data: bytes) -> None:
    """Markdown with front matter as a finding and as a deployment."""
    from forensics.knowledge.finding import read_finding
    from forensics.knowledge.front import headings, split_page
    from forensics.rulebook.problem import Problem

    page = split_page(_text(data), "kb/findings/x.md")
    if isinstance(page, Problem):
        page.render()
        return
    headings(page)
    for problem in read_finding(page)[1]:
        problem.render()


def rule(data: bytes) -> None:
    """A rule file."""
    from forensics.rulebook.located import Reader
    from forensics.rulebook.schema import read_rule

    reader = Reader("rules/numerics/x.yaml", _text(data))
    read_rule(reader, "numerics")
    for problem in reader.problems:
        problem.render()


def flag_edits(data: bytes) -> None:
    """Edits of a launch command: the changed command states the change, and can be read again."""
    from forensics.replay.edits import Change, change_command, main_spelling, read_server

    head, _, rest = data.partition(b"\n")
    change = Change.parse(_text(head))
    after = change_command(_text(rest), [change])
    command = read_server(after)
    names = [main_spelling(flag.name) for flag in command.flags]
    if change.kind == "flag":
        assert (main_spelling(change.name) in names) == (change.op == "set"), after
    elif change.op == "set":
        assert [a.value for a in command.env if a.name == change.name][-1:] == [change.value], after


def mask(data: bytes) -> None:
    """Masking: masked text holds nothing more to mask, and known secrets never stay."""
    from forensics.output.clean import clean
    from forensics.output.mask import mask as hide

    text = _text(data)
    hide(text)
    secret = "hf_" + "Q7w9" * 8
    assert secret not in hide(f"{text} {secret} {text}")
    assert clean(text).replace("\u3000", "").isprintable() or any(unicodedata.category(c) == "Zs" for c in text)


def outputs(data: bytes) -> None:
    """The whole way: a log with this tail, analyzed, in every format."""
    from forensics.analysis import read_table, report
    from forensics.output.formats import names, render
    from forensics.schema.options import Options

    options = Options()
    with _scanned(b"[2026-01-05 10:00:00 TP0] Load weight begin. avail mem=1.0 GB\n" + data) as table:
        found = report(read_table(table, options, _knowledge()), options, _knowledge())
    page = all(find_spec(name) for name in ("jinja2", "matplotlib"))
    for name in names():
        if name != "html" or page:  # its extra may not be installed
            render(found, name, width=80, color=False, detail=1, brief=False, quiet=False, max_bytes=0)


@cache
def _knowledge() -> Knowledge:
    from forensics.knowledge.store import load
    from forensics.schema.options import Options

    return load(Options())


def _dumps() -> list[bytes]:
    found = [line.split(b"server_args=", 1)[1][:SEED_BYTES] for line in _log_lines_whole() if b"server_args=" in line]
    return found[:6] or [b"ServerArgs(tp_size=8, api_key=None)"]


def _log_lines_whole() -> list[bytes]:
    return [line for p in sorted(ROOT.glob("samples/cases/*/log.txt"))[::9] for line in p.read_bytes().split(b"\n")]


def _commands() -> list[bytes]:
    return [
        b"A=1 B='x y' python3 -m sglang.launch_server --model-path /m --tp 8 --quantization modelopt_fp4",
        b"docker run --gpus all -e X=1 image:tag python -m sglang.launch_server --model m --tp-size=8 \\\n --port 30000",
        b"nohup sglang serve /m --json-model-override-args '{\"a\": 1}' > server.log 2>&1 &",
        b"cd /x && env A=1 /opt/bin/python3.12 -m sglang.launch_server --disable-cuda-graph",
    ]


def _edits() -> list[bytes]:
    heads = (b"set --dtype=bfloat16", b"remove --quantization", b"set A=x y", b"unset B", b"set --disable-cuda-graph")
    return [head + b"\n" + text for head in heads for text in _commands()]


def _conditions() -> list[bytes]:
    found = []
    for page in _files("kb/findings/*.md", 60):
        found += [s[2:].strip() for s in page.split(b"\n") if s.startswith(b"    - ") and b":" not in s]
    return found or [b"a before b"]


def _archives() -> list[bytes]:
    return [gzip.compress(part, mtime=0) for part in _log_parts()[:4]]


def _secrets() -> list[bytes]:
    return [
        b"server_args=ServerArgs(model_path='/m', api_key='abcdEFGH12345678', admin_api_key=None)",
        b"curl -H 'Authorization: Bearer abcdefgh12345678' https://u:p4ssw0rd@example.org/x?token=abc",
        b"Receive: obj=GenerateReqInput(text='my prompt', input_ids=[1,2])",
        b"-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----",
        b'{"api_key": "abc", "messages": [{"role": "user", "content": "hi"}]}',
    ]


TARGETS = (
    Target("ingest", "ingest", ingest, _log_parts, LOG_WORDS),
    Target("compressed", "ingest", compressed, _log_parts, LOG_WORDS),
    Target("bundle", "bundle", bundle, _archives, ()),
    Target("line", "grammar", line, _log_lines, LOG_WORDS),
    Target("header", "grammar", header, _log_lines, LOG_WORDS),
    Target("blocks", "grammar", blocks, _log_parts, LOG_WORDS),
    Target("server-args", "server_args", server_args, _dumps, LOG_WORDS),
    Target("command", "grammar", command, _commands, SHELL_WORDS),
    Target("env-report", "grammar", env_report, lambda: _files("samples/**/*env*.txt", 8), LOG_WORDS),
    Target("conditions", "conditions", conditions, _conditions, CONDITION_WORDS),
    Target("finding", "front matter", finding, lambda: _files("kb/findings/*.md", 40), YAML_WORDS),
    Target("rule", "front matter", rule, lambda: _files("rules/*/*.yaml", 60), YAML_WORDS),
    Target("flag-edits", "flag edits", flag_edits, _edits, SHELL_WORDS),
    Target("mask", "output", mask, _secrets, SECRET_WORDS),
    Target("outputs", "output", outputs, _log_parts, LOG_WORDS),
)


def check(target: Target, data: bytes) -> None:
    """Run one input; a documented error is fine, anything else leaves as it is."""
    from forensics.errors import ForensicsError

    try:
        target.run(data)
    except ForensicsError as error:
        error.render()
