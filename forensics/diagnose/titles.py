"""What a line says, without the headers in front of it: for titles."""

from __future__ import annotations

from forensics.late import Late

MAX_TITLE = 70
NO_MESSAGE = "An exception whose message is cut off"
_HEADS = tuple(
    Late(pattern)
    for pattern in (
        r"\[[^\]]{4,40}\]\s{0,8}",
        r"[EWIF]\d{3,8} [\d:.]{1,30} {1,8}\d{1,10} {1,4}",
        r"[\d-]{8,10}[ T][\d:.,]{1,30}(?:Z|[+-]\d\d:?\d\d)?\s{0,8}",
        r"[\w.-]{1,120}:\d{1,10}:\d{1,10} \[[\d-]{1,6}\] (?:\S{1,80}:\d{1,6} )?NCCL (?:WARN|INFO|ERROR) ?",
        r"[\w./-]{1,120}\.(?:cc?|cpp|cu|cuh|h|hpp|rs|py|go):\d{1,6}(?:[\]:]|(?=\s)) {0,8}",
        r"(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b:? {0,8}",
        r"(?:[a-z_]\w{0,60}::){1,12}[a-z_]\w{0,60}: ?",
        r"[a-z_]\w{2,40}\{[^}]{0,400}\}: ?",
        r"thread '[^']{0,200}' (?:\(\d+\) )?panicked at \S{1,200}\s{0,4}",
        r"UCX {1,8}(?:ERROR|FATAL|WARN) {0,8}",
        r":?\[[EWIF]\d{3,8} [^\]]{8,80}\]\s{0,8}",
        r"Process group watchdog thread terminated with exception: ",
    )
)
"""Time stamps, the headers of glog, NCCL, UCX and of Rust's tracing, source places and log levels."""


def message_of(text: str, width: int = MAX_TITLE) -> str:
    """The message itself, cut at a word. A panic's message stands below its head."""
    if "Traceback (most recent call last)" in text:
        return NO_MESSAGE
    bare = _bare(text.strip())
    return bare if len(bare) <= width else bare[:width].rsplit(" ", 1)[0] + " …"


def _bare(text: str) -> str:
    for _ in range(8):
        found = next((m for head in _HEADS if (m := head.match(text)) and m.end()), None)
        if found is None or found.end() >= len(text):
            break
        text = text[found.end() :].lstrip()
    return text.split("\n", 1)[0].strip()
