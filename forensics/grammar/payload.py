"""Lines that are objects around a message: docker's json-file, `journalctl -o json`, GCP and Loki exports, logfmt."""

from __future__ import annotations

import re

from forensics.late import Late

_TEXT = Late(r'"(?:log|MESSAGE|@?message|msg|textPayload|line)"\s*:\s*"((?:[^"\\]|\\.)*)"', re.ASCII)
_TIME = Late(r'"(?:(?:asc)?time|@?timestamp|ts|__REALTIME_TIMESTAMP)"\s*:\s*"?(\d[^",}]*)', re.ASCII)
_LOGFMT = Late(
    r'(?:time|ts|timestamp|t|level|lvl)=(?:"[^"]*"|\S*)(?: \w[\w.-]*=(?:"[^"]*"|[^" ]*)){0,12}?'
    r' (?:msg|message|log|line)="((?:[^"\\]|\\.)*)"',
    re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = Late(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def json_payload(text: str) -> tuple[int, int, int, int, bool, bool] | None:
    """Find message and timestamp in one JSON line.

    Gives start and end of the message's inside, start and end of the timestamp (0, 0: none), whether that is in
    microseconds since the epoch, and whether docker split the message here (its `log` lacks the newline).
    """
    found = _TEXT.search(text)
    if found is None:
        return None
    start, end = found.span(1)
    docker = found[0].startswith('"log"') and '"stream"' in text
    partial = docker and not text.endswith("\\n", start, end)
    while text.endswith(("\\n", "\\r"), start, end):
        end -= 2
    stamp = _TIME.search(text, end) or _TIME.search(text, 0, start)
    if stamp is None:
        return start, end, 0, 0, False, partial
    epoch = "__REALTIME" in stamp[0]
    return start, end, stamp.start(1), stamp.end(1), epoch, partial


def logfmt_payload(text: str) -> tuple[int, int, int, int, bool, bool] | None:
    """The same for a logfmt line (`time="…" level=info msg="…"`), whose quoted value is escaped alike."""
    found = _LOGFMT.match(text)
    if found is None:
        return None
    start, end = found.span(1)
    while text.endswith(("\\n", "\\r"), start, end):
        end -= 2
    return start, end, 0, start, False, False


def unescape(text: str) -> tuple[str, list[int]]:
    """Resolve JSON escapes; also gives, for each resulting character, its offset in the escaped text.

    Masked text turns `\\u001b` into `\\u000b`; both read as the escape character, so masking changes nothing."""
    out: list[str] = []
    places: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        out += text[at : match.start()]
        places += range(at, match.start())
        out.append(_resolved(match))
        places.append(match.start())
        at = match.end()
    out += text[at:]
    places += range(at, len(text))
    return "".join(out), places


def _resolved(match: re.Match[str]) -> str:
    if match[1] is None:
        return _ESCAPES.get(match[2], match[2])
    code = int(match[1], 16)
    if match[1].lower() in ("001b", "000b"):
        return "\x1b"
    # half of a surrogate pair is no character: nothing downstream could encode it
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code)
