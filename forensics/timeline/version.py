"""Which sglang release wrote the log: an interval, narrowed by what is printed, from the surest ground on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.grammar.command import read_command
from forensics.late import Late
from forensics.rulebook.versions import Key, is_dev, older, version_key
from forensics.schema.facts import Fact, VersionInterval
from forensics.schema.span import Span
from forensics.timeline.catalog import Lifetime, catalog, first_build_after
from forensics.timeline.facts_sheet import Sheet
from forensics.timeline.sieve import Sieve
from forensics.timeline.version_argparse import Evidence, usage_evidence
from forensics.timeline.version_batches import batch_evidence
from forensics.timeline.version_fields import MIN_FIELDS, FieldBound, field_bounds

MIN_MESSAGE = 10
LAST_CALL_FORM, FIRST_DICT_FORM = "0.5.18", "0.5.19"
OWN_WORDINGS = (("Init parallel begin.", "0.5.20.post1.dev0"), ("Init parallel ends", "0.5.20.post1.dev0"))
"""Wordings that the message catalog lacks, with the first build that can print them (seen in runs of 0.5.23)."""
_SKIPPED = ("server-args", "request-dump", "argparse", "access", "frame-source")
_VERSION = r"(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?[\w.+]{0,60}?)"
_STATED = tuple(
    Late(pattern)
    for pattern in (
        rf"\bsglang-{_VERSION}(?:\.dist-info|-py3)",
        rf"lmsysorg/sglang:v?{_VERSION}(?=-|\s|$|['\",@])",
        rf"(?:^|[\s(,'\"])sglang=={_VERSION}(?=$|[\s,;)'\"])",
        rf"\bsglang {_VERSION} (?:requires|has requirement|depends on)",
        rf"\b[Ss][Gg][Ll]ang[ _-]?(?:[Vv]ersion|__version__)['\"]?\s{{0,4}}[:=]? ?['\"]?v?{_VERSION}(?=$|[\s,;)'\"])",
        rf"^sglang: {_VERSION}\s{{0,8}}$",
    )
)
_ADVISES = Late(r">=|require[sd]? sglang|upgrade|please install|pip install", re.IGNORECASE)


def infer_version(table: EventTable, rows: npt.NDArray[np.int64], facts: dict[str, Fact]) -> VersionInterval:
    """The interval of releases that can have written a launch's rows, with the grounds that narrowed it.

    Grounds, surest first: a stated version; the form and the field set of `server_args=`; wordings of messages with
    known lifetimes; flags on the command line. A ground that contradicts surer ones widens the interval to both and
    is named. A development build sets only the lower end.
    """
    sheet = Sheet(table, rows, dict(facts))
    stated = _stated(sheet)
    inferred = [*_dump(facts), *usage_evidence(sheet), *_messages(sheet), *batch_evidence(sheet), *_command(sheet)]
    if stated is not None:
        return _with_stated(stated, inferred)
    low, high, grounds = _narrow(sorted(inferred, key=lambda e: e.weight))
    return VersionInterval(low, high, None, tuple(grounds))


# -- grounds ------------------------------------------------------------------------------------------------------


def _stated(sheet: Sheet) -> tuple[str, Span | None] | None:
    fact = sheet.facts.get("version.sglang")
    if fact is not None and isinstance(fact.value, str) and version_key(fact.value):
        return fact.value, fact.where
    for kind, masked, row in sheet.first_rows():
        if kind in _SKIPPED or "sglang" not in masked.lower():
            continue
        text = sheet.table.text(row)[:4000]
        for pattern in _STATED:
            found = pattern.search(text)
            if found and version_key(found.group(1)) and not _ADVISES.search(text):
                return found.group(1), sheet.place(row, *found.span(1))
    return None


def _dump(facts: dict[str, Fact]) -> Iterator[Evidence]:
    """Form and field set of the dump. Facts that stand for a command line have no such set."""
    fields = {n.removeprefix("args."): f for n, f in facts.items() if n.startswith("args.") and f.how == "stated"}
    if len(fields) < MIN_FIELDS:
        return
    if "model_path" in fields:
        yield from _form(fields["model_path"])
    low, high = field_bounds(fields)
    if _abridged(low, high):
        high = None
    for bound, lower in ((low, True), (high, False)):
        if bound is None:
            continue
        where = (
            fields[bound.field].where
            if bound.field in fields
            else (fields.get("model_path") or next(iter(fields.values()))).where
        )
        verb = "has" if bound.present else "lacks"
        reason = f"server_args {verb} {bound.field}"
        yield Evidence(reason, where, bound.release if lower else None, None if lower else bound.release, 1)


def _abridged(low: FieldBound | None, high: FieldBound | None) -> bool:
    """Whether a dump has a field of a later release and lacks one of an earlier release, with releases in between:
    somebody shortened it, and what it lacks proves nothing."""
    if low is None or high is None or not older(high.release, low.release):
        return False
    following = catalog().after(high.release)
    return following is not None and older(following, low.release)


def _form(fact: Fact) -> Iterator[Evidence]:
    """The dump's form, told by the place of its first field: `'model_path': …` or `model_path=…`."""
    if fact.where is None:
        return
    name = fact.where.byte_end - fact.where.byte_start - len(repr(fact.value))
    if name > len("'model_path':  "):
        return  # the place is that of the whole line: an escaped message
    quoted = name > len("model_path=")
    known = catalog()
    if quoted:
        yield Evidence("server_args is printed as a dict", fact.where, first_build_after(LAST_CALL_FORM), None, 1)
    else:
        yield Evidence("server_args is printed as ServerArgs(…)", fact.where, None, known.before(FIRST_DICT_FORM), 1)


@frozen
class Wording:
    """One wording of a message: its text or pattern, and when releases print it."""

    message: str
    match: str
    pattern: Late[str] | None
    life: Lifetime

    def find(self, text: str) -> int:
        """Where the wording stands in a text, -1 where it does not."""
        if self.pattern is None:
            return text.find(self.match)
        found = self.pattern.search(text)
        return found.start() if found else -1


@cache
def _wordings() -> tuple[Wording, ...]:
    """All wordings that are long enough to mean something."""
    known = catalog()
    own = tuple(Wording(match, match, None, Lifetime(None, None, low, None)) for match, low in OWN_WORDINGS)
    return own + tuple(
        Wording(
            message["id"],
            variant["match"],
            Late(variant["match"]) if variant.get("regex") else None,
            known.lifetime(variant["first"], variant["last"]),
        )
        for message in known.messages
        if message.get("stage") != "line-prefix"
        for variant in message["variants"]
        if len(variant["match"]) >= MIN_MESSAGE
    )


@cache
def _sieve() -> Sieve:
    found = Sieve()
    for wording in _wordings():
        found.add(wording.pattern.pattern if wording.pattern else re.escape(wording.match))
    return found


def make_ready() -> None:
    """Load what every launch asks for."""
    _near("")


def _near(masked: str) -> list[Wording]:
    """The wordings that a message can have."""
    every = _wordings()
    return [every[number] for number in sorted(_sieve().near(masked))]


def _messages(sheet: Sheet) -> Iterator[Evidence]:
    """Wordings in the launch. A line that fits several wordings of one message counts for all their releases."""
    seen: set[tuple[str, ...]] = set()
    for kind, masked, row in sheet.first_rows():
        if kind in ("request-dump", "argparse", "access", "frame-source", "frame"):
            continue
        text = ""
        fits: dict[str, list[tuple[Wording, int]]] = {}
        for wording in _near(masked):
            if wording.pattern is None and _digitless(wording.match) not in masked:
                continue
            text = text or sheet.table.text(row)[:4000]
            start = wording.find(text)
            if start >= 0:
                fits.setdefault(wording.message, []).append((wording, start))
        for found in fits.values():
            key = tuple(w.match for w, _ in found)
            if key not in seen:
                seen.add(key)
                yield from _hull(sheet, row, found)


def _hull(sheet: Sheet, row: int, found: list[tuple[Wording, int]]) -> Iterator[Evidence]:
    lows = [w.life.low for w, _ in found]
    highs = [w.life.high for w, _ in found]
    low = None if None in lows else min((x for x in lows if x), key=_order)
    high = None if None in highs else max((x for x in highs if x), key=_order)
    if low is None and high is None:
        return
    wording, start = found[0]
    where = sheet.place(row, start, start + len(wording.match))
    yield Evidence(f"message “{_short(wording.match)}”", where, low, high, 2)


def _order(version: str) -> Key:
    key = version_key(version)
    assert key is not None
    return key


@cache
def _digitless(text: str) -> str:
    """The longest part of a message without digits: masked texts hold no others."""
    return max(re.split(r"\d+(?:\.\d+)?", text), key=len)


def _command(sheet: Sheet) -> Iterator[Evidence]:
    """Flags that the release accepted: only where start-up got past argument parsing."""
    fact = sheet.facts.get("launch.command")
    if fact is None or not isinstance(fact.value, str) or "args.tokenizer_path" not in sheet.facts:
        return
    command = read_command(fact.value, catalog())
    for flag in command.flags if command else ():
        life = catalog().flag_lifetime(flag.name)
        if life and (life.low or life.high):
            yield Evidence(f"the command line has {flag.name}", fact.where, life.low, life.high, 3)


# -- combination --------------------------------------------------------------------------------------------------


def _narrow(evidence: list[Evidence]) -> tuple[str | None, str | None, list[tuple[str, Span | None]]]:
    """Intersection, ground by ground; a contradicting ground widens the interval instead, and is said to."""
    low: str | None = None
    high: str | None = None
    grounds: list[tuple[str, Span | None]] = []
    for item in evidence:
        new_low = item.low if item.low and (low is None or older(low, item.low)) else low
        new_high = item.high if item.high and (high is None or older(item.high, high)) else high
        if (new_low, new_high) == (low, high):
            continue
        if new_low and new_high and older(new_high, new_low):
            low, high = _contradiction(item, low, high, new_low, new_high, grounds)
            continue
        low, high = new_low, new_high
        grounds.append((f"{item.reason}: {_range(item)}", item.where))
    return low, high, grounds


def _contradiction(
    item: Evidence, low: str | None, high: str | None, new_low: str, new_high: str,
    grounds: list[tuple[str, Span | None]],
) -> tuple[str | None, str | None]:  # fmt: skip
    """Grounds that miss each other by one release mean a build between two releases; else the ground is doubtful."""
    following = catalog().after(new_high)
    if following and older(new_low, following):
        grounds.append((f"{item.reason}: {_range(item)}; so a build between {new_high} and {following}", item.where))
        return new_low, following
    if item.weight <= 1:
        grounds.append((f"{item.reason}: {_range(item)}; the dump mixes releases: widened to all of them", item.where))
        return new_high, new_low
    grounds.append((f"{item.reason}: {_range(item)}; contradicts the grounds before, so it is not used", item.where))
    return low, high


def _with_stated(stated: tuple[str, Span | None], inferred: list[Evidence]) -> VersionInterval:
    """A stated version settles it; inferred grounds that contradict it widen the interval and are named."""
    version, where = stated
    grounds: list[tuple[str, Span | None]] = [(f"the log states {version}", where)]
    if is_dev(version):
        return VersionInterval(version, None, version, tuple(grounds))
    low = high = version
    for item in inferred:
        if item.weight > 1:
            continue
        if item.low and older(version, item.low):
            high = item.low if older(high, item.low) else high
        elif item.high and older(item.high, version):
            low = item.high if older(item.high, low) else low
        else:
            continue
        grounds.append((f"{item.reason}: {_range(item)}; contradicts the stated version", item.where))
    return VersionInterval(low, high, version if low == high else None, tuple(grounds))


def _range(item: Evidence) -> str:
    if item.low and item.high:
        return item.low if item.low == item.high else f"{item.low} to {item.high}"
    return f"{item.low} or later" if item.low else f"{item.high} or earlier"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
