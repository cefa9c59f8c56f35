"""The findings whose logs look most like a first failure: a pointer where no known cause fits, never more.

Releases reword messages more often than they move the code that raises them. So an exception of the same type, raised
in the same function, needs less likeness of words than a line alone does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from forensics.frozen import frozen
from forensics.late import Late
from forensics.schema.block import Frame
from forensics.schema.finding import Finding
from forensics.timeline import component

_DIGITS = Late(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*")
_PATH = Late(r"/(?:[\w.+@-]+/)+")
_HEAD = Late(r"^\[[^\]]{6,60}\]\s*(?:(?:INFO|WARNING|ERROR) [\w./]+:\d+: )?")
_DULL = Late(
    r'^\s*(?:File "|Traceback|\^|$)|^\s{2,}|Scheduler hit an exception|server_args=|Load weight|[Ss]igquit|SIGQUIT'
    r"|Memory pool|Init torch|fired up|Prefill batch|Decode batch|KV Cache|Capture cuda graph (?:begin|bs|end)|INFO:"
)
_TYPE = Late(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit)(?::\s*|\s*$)")
_FRAME = Late(r'File "([^"]{1,400})", line \d+, in (\S{1,200})')
_QUOTED = Late(r"'[^']{0,300}'|\"[^\"]{0,300}\"|`[^`]{0,300}`")
_LATE = Late(r"(?i)\bCUDA error|\bHIP error|cudaError|out of memory|timed? ?out|NCCL|gloo")
"""What is reported by whoever comes next, or by whoever asks for memory: the place says nothing."""
_WORD = Late(r"[A-Za-z_][A-Za-z_]{2,}")
_STOP = frozenset({"the", "and", "for", "with", "from", "this", "that", "not", "are", "was", "has", "have", "but",
                   "error", "failed", "exception", "got", "none", "true", "false"})  # fmt: skip
_COMMON = Late(
    r"^(?:list|tuple|string|deque|pop from \w+) (?:assignment )?index out of range|^index #? ?out of range"
    r"|^'NoneType' object (?:is not|has no)|^argument of type 'NoneType'|dictionary changed size during iteration"
    r"|object has no attribute '|^(?:not enough|too many) values to unpack|^unsupported operand type"
    r"|^list indices must be"
)
"""What Python says of any program: alike in every log, so likeness means nothing."""
MIN_WORDS = 4
"""Informative words that a message needs before its likeness to another one means anything."""
MIN_PLACED = 3
PLACED = 55.0
"""The same for an exception whose place is the same: fewer words, and a smaller share of them."""
MIN_SCORE = 74.0
CLOSE, SAME = 84.0, 97.0
"""Between these a finding is worth naming as a possible cause where nothing else explains the failure. Above, the words
are the same, and the finding's own conditions have already said no."""


def shape(text: str) -> str:
    """The first line of a message with numbers and folders masked."""
    line = next((part for part in text.splitlines() if part.strip()), "")
    return _DIGITS.sub("#", _PATH.sub("/", line)).strip()


def said(text: str) -> str:
    """The shape of what a message says, without its exception type; "" where that is too little to compare: a bare
    exception is like every other one."""
    bare = _TYPE.sub("", shape(text))[:300]
    words = {w.lower() for w in _WORD.findall(bare)} - _STOP
    return bare if len(words) >= MIN_WORDS and not _COMMON.search(bare) else ""


@frozen
class Raised:
    """Where an exception was raised: its type, the innermost telling frame as file and function, and what it says
    without quoted names."""

    type: str
    file: str
    function: str
    words: str


def raised_at(text: str, frames: Sequence[Frame]) -> Raised | None:
    """The place of a failure that is an exception with a message of its own, or None."""
    named = _TYPE.match(text)
    telling = [f for f in frames if not component.PLUMBING.search(f.file)]
    words = _placed_words(text)
    if named is None or not telling or not words or _LATE.search(text[:400]):
        return None
    return Raised(_type_name(named[0]), _base(telling[-1].file), telling[-1].function, words)


def nearest(
    text: str, findings: Iterable[Finding], place: Raised | None = None, count: int = 3
) -> list[tuple[str, float]]:
    """At most `count` findings with a log line like `text`, with the likeness (0 to 100), most similar first. Where an
    exception of the same type was raised in the same function, a reworded message counts as close."""
    wanted = said(text)
    if not wanted and place is None:
        return []
    scored = [(score, f.id) for f in findings if (score := _score(wanted, place, f)) >= MIN_SCORE]
    return [(name, score) for score, name in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:count]]


def _score(wanted: str, place: Raised | None, finding: Finding) -> float:
    """Likeness to the finding's matching logs; none where one of its near misses is as like: it says itself that such
    a line can be something else."""
    found = _likeness(wanted, finding, "match") if wanted else 0.0
    placed = _placed(place, finding, "match") if place is not None and found < CLOSE else 0.0
    if placed >= PLACED and _placed(place, finding, "near-miss") < placed:
        found = max(found, CLOSE)
    if found < MIN_SCORE or (wanted and _likeness(wanted, finding, "near-miss") >= found):
        return 0.0
    return round(found, 1)


def _placed(place: Raised | None, finding: Finding, expect: str) -> float:
    """Likeness of words to exceptions of the same type from the same function, of the finding's logs."""
    from rapidfuzz import fuzz

    same = [
        known
        for block in finding.logs
        if block.expect == expect
        for known in _exceptions(block.text)
        if place is not None and (known.type, known.file, known.function) == (place.type, place.file, place.function)
    ]
    return max((fuzz.token_set_ratio(place.words, known.words) for known in same if place is not None), default=0.0)


@lru_cache(maxsize=4096)
def _exceptions(log: str) -> tuple[Raised, ...]:
    """The exceptions of a finding's log, with the frames above each."""
    found: list[Raised] = []
    frames: list[Frame] = []
    for number, line in enumerate(log.splitlines()[:400]):
        frame = _FRAME.search(line)
        if frame is not None:
            frames.append(Frame(number, frame[1], 0, frame[2]))
            continue
        bare = _HEAD.sub("", line).strip()
        if frames and _TYPE.match(bare):
            raised = raised_at(bare, frames)
            found += [raised] if raised is not None else []
            frames = []
    return tuple(found)


def _placed_words(text: str) -> str:
    bare = _TYPE.sub("", shape(_QUOTED.sub(" ", text)))[:300]
    words = [w.lower() for w in _WORD.findall(bare) if w.lower() not in _STOP]
    return " ".join(words) if len(words) >= MIN_PLACED else ""


def _type_name(text: str) -> str:
    return text.rstrip(": \t").rpartition(".")[2]


def _base(file: str) -> str:
    return file.rpartition("/")[2]


def _likeness(wanted: str, finding: Finding, expect: str) -> float:
    from rapidfuzz import fuzz

    best = 0.0
    for block in finding.logs:
        if block.expect != expect:
            continue
        for known in _sayings(block.text):
            best = max(best, fuzz.ratio(wanted, known, score_cutoff=best), _shortened(wanted, known, best))
    return best


@lru_cache(maxsize=4096)
def _sayings(log: str) -> tuple[str, ...]:
    """What the telling lines of a finding's log say."""
    bare = (_HEAD.sub("", line) for line in log.splitlines()[:200])
    return tuple(known for line in bare if not _DULL.search(line) and (known := said(line)))


def _shortened(wanted: str, known: str, best: float) -> float:
    """Likeness to the beginning of a longer line (tails differ between releases), at a discount."""
    if len(known) <= len(wanted):
        return 0.0
    from rapidfuzz import fuzz

    return 0.95 * fuzz.ratio(wanted, known[: len(wanted)], score_cutoff=best)
