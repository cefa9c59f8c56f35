"""What grounds say, in a reader's words: titles of rules for their ids, flags for the names of arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from forensics.late import Late
from forensics.schema.signal import Rule

_ID = Late(r"(?<![\w./=-])[a-z][a-z0-9]*(?:[-/][a-z0-9]+)+(?![\w=/-]|\.\w)")
_SEEN = Late(r"{(\w+)} was seen (once|[\d,]+ times|on [^;{}]+)")
_UNSEEN = Late(r"{(\w+)} was not seen")
_SHOWS = Late(r"the first failure shows {(\w+)}")
_HELD = Late(r"{(\w+)}")
_ARGUMENT = Late(r"\bargs\.([a-z][a-z0-9_]*)")
_COMPARISON = Late(
    r"(?<![\w./-])([a-z][\w./-]*(?: [-+*/] [\w./-]+){0,8}) (?:[<>!]?=|<|>)"
    r" ([a-z][\w./-]*(?: [-+*/] [\w./-]+){0,8}|[\d.]+)"
)
_VALUES = Late(r"the value is ([^,;]+), compared with ([^,;]+)")
_BYTES = Late(r"-?\d+(?:\.\d+)?")
_CAPTURE = Late(r"(?<![\w./-])([a-z][\w/-]*)\.(\w+)")
_FEATURE = Late(r"\bfeature\.([a-z][a-z0-9_]*) is (true|false)")


def readable(why: str, rules: Mapping[str, Rule], condition: str = "") -> str:
    """`why` of a ground with rule ids and argument names put into words; unknown words stay as they are. The
    `condition` names what was compared."""
    why = _compared(why, condition, rules)
    titles: dict[str, str] = {}

    def hold(found: re.Match[str]) -> str:
        rule = rules.get(found[0])
        if rule is None:
            return found[0]
        key = f"k{len(titles)}"
        titles[key] = rule.title
        return f"{{{key}}}"

    if "{" in why or "}" in why:
        return why
    text = _ID.sub(hold, why)
    text = _FEATURE.sub(lambda m: f"{m[1]} is {'on' if m[2] == 'true' else 'off'}", text)
    text = _ARGUMENT.sub(lambda m: "--" + m[1].replace("_", "-"), text)
    # a title may hold braces of its own: they are not ours, and stay
    for pattern, form in _FORMS:
        text = pattern.sub(partial(_put, form, titles), text)
    return text


def _put(form: Form, titles: Mapping[str, str], found: re.Match[str]) -> str:
    return form(titles[found[1]], found) if found[1] in titles else found[0]


Form = Callable[[str, re.Match[str]], str]
_FORMS: tuple[tuple[Late[str], Form], ...] = (
    (_SHOWS, lambda title, _: f"the first failure says it: {title}"),
    (_SEEN, lambda title, found: f"{title} ({found[2]})"),
    (_UNSEEN, lambda title, _: f"no line shows “{title}”"),
    (_HELD, lambda title, _: f"“{title}”"),
)


def _compared(why: str, condition: str, rules: Mapping[str, Rule]) -> str:
    """`tokens of kv-free is 2048, tokens of kv-wanted is 148` for `the value is 2048, compared with 148`; where both
    sides come from one line, `free is 2048, size is 148, in kv-pool`."""
    sides = [
        m
        for m in _COMPARISON.findall(condition)
        # one capture against a number is named where it is compared
        if "." in m[0] and not m[0].startswith("args.") and not (" " not in m[0] and m[1][0].isdigit())
    ]
    found = _VALUES.findall(why)
    if not found or len(found) != len(sides):
        return why
    names = iter(sides)

    def spoken(match: re.Match[str]) -> str:
        left, right = next(names)
        signals = {signal for side in (left, right) for signal, _ in _CAPTURE.findall(side) if signal in rules}
        one = signals.pop() if len(signals) == 1 else ""
        told = f"{_spoken(left, rules, one)} is {_in_unit(match[1], left, rules)}"
        if right != match[2]:
            told = f"{told}, {_spoken(right, rules, one)} is {_in_unit(match[2], right, rules)}"
        return f"{told}, in {one}" if one else told

    return _VALUES.sub(spoken, why)


def _spoken(side: str, rules: Mapping[str, Rule], known: str) -> str:
    """One side of a comparison; whose capture each is goes without saying for the rule that is `known`."""
    return _CAPTURE.sub(lambda m: m[0] if m[1] not in rules else m[2] if m[1] == known else f"{m[2]} of {m[1]}", side)


def _in_unit(value: str, side: str, rules: Mapping[str, Rule]) -> str:
    """The value of a side of a comparison; bytes, which is what captured sizes come to, as a person writes them."""
    named = _CAPTURE.findall(side)
    sizes = [signal in rules and dict(rules[signal].captures).get(name) == "size" for signal, name in named]
    by_each_other = len(named) > 1 and (" * " in side or " / " in side)
    if not sizes or not all(sizes) or by_each_other or not _BYTES.fullmatch(value):
        return value
    count = float(value)
    if abs(count) < 1 << 20:  # the line may have had no unit
        return value
    return f"{count / (1 << 30):.3g} GB" if abs(count) >= 1 << 30 else f"{count / (1 << 20):.3g} MB"
