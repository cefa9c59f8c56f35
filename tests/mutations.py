"""Changes to a log that must not change its diagnosis. Each takes and gives the text; all are deterministic."""

from __future__ import annotations

import re
from collections.abc import Callable

STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[.,]?\d*((?: [A-Z_]+\d+)*)\]")
RANKED = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[.,]?\d*((?: [A-Z_]+\d+)+)\] (?!.*Traceback)")
FRAMEWORK = re.compile(
    r'"/(?:[\w.+-]+/)+(?=(?:sglang|torch|transformers|triton|vllm|flashinfer|uvicorn|multiprocessing)/)'
)
MODEL = re.compile(r"model_path='([^']+)'|--model(?:-path)?[= ](\S+)")
NOISE = (
    "{stamp} Ignore import error when loading sglang.srt.models.some_model: No module named 'some_extra'",
    "/usr/lib/python3/dist-packages/lib/thing.py:31: FutureWarning: this argument will go away",
    "{stamp} The following generation flags are not valid and may be ignored: ['top_k'].",
)


def reordered(text: str) -> str:
    """Neighbouring one-line records of different ranks in the same second change places."""
    lines = text.split("\n")
    place = 0
    while place + 2 < len(lines):
        one, two = RANKED.match(lines[place]), RANKED.match(lines[place + 1])
        alone = place + 2 >= len(lines) or STAMP.match(lines[place + 2])
        if one and two and alone and one.group(1) == two.group(1) and one.group(2) != two.group(2):
            lines[place], lines[place + 1] = lines[place + 1], lines[place]
            place += 1
        place += 1
    return "\n".join(lines)


def without_milliseconds(text: str) -> str:
    """Time stamps to the second."""
    return "\n".join(STAMP.sub(r"[\1\2]", line) for line in text.split("\n"))


def composed(text: str) -> str:
    """As a compose project prints it."""
    ends = text.endswith("\n")
    body = "\n".join(f"sglang-1  | {line}" for line in text.rstrip("\n").split("\n"))
    return body + ("\n" if ends else "")


def moved(text: str) -> str:
    """Another place of installation."""
    return FRAMEWORK.sub('"/srv/env/lib/python3.11/site-packages/', text)


def renamed(text: str) -> str:
    """Another model folder."""
    for match in MODEL.finditer(text):
        name = next(g for g in match.groups() if g).strip("'\"")
        if len(name) > 6:
            text = text.replace(name, "/mnt/w/m-" + re.sub(r"[^-]", "x", name.rsplit("/", 1)[-1])[:12])
    return text


def noisy(text: str) -> str:
    """Unrelated warnings between the lines, never inside a block."""
    out: list[str] = []
    for number, line in enumerate(text.split("\n")):
        stamp = STAMP.match(line)
        if stamp and number % 7 == 3 and out and STAMP.match(out[-1]):
            out.append(NOISE[number % len(NOISE)].format(stamp=f"[{stamp.group(1)}]"))
        out.append(line)
    return "\n".join(out)


def reseeded(text: str) -> str:
    """Other ports, seeds and process ids."""
    text = re.sub(r"random_seed=\d+", "random_seed=4711", text)
    text = re.sub(r"(?<![\w.])port=\d+", "port=31999", text)
    return re.sub(r"\(pid=\d+", "(pid=99999", text)


def windows(text: str) -> str:
    """CRLF line ends."""
    return text.replace("\n", "\r\n")


_ERROR = re.compile(r"^((?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception): )(.{40,})$")
_TAIL_KEPT = 0.75


def reworded(text: str) -> str:
    """The last words of exception messages as another release might put them."""
    out: list[str] = []
    for line in text.split("\n"):
        found = _ERROR.match(line)
        if found:
            words = found.group(2).split(" ")
            kept = words[: max(4, int(len(words) * _TAIL_KEPT))]
            line = found.group(1) + " ".join(kept) + (" as this build reports it" if len(kept) < len(words) else "")
        out.append(line)
    return "\n".join(out)


ALL: dict[str, Callable[[str], str]] = {
    f.__name__: f
    for f in (reordered, without_milliseconds, composed, moved, renamed, noisy, reseeded, windows, reworded)
}
