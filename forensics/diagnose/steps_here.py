"""The steps of a finding's fix for one launch: those whose condition holds, with what the log names filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from forensics.diagnose.fill import leaves_open
from forensics.diagnose.wording import readable
from forensics.late import Late
from forensics.output.mask import mask
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import evaluate
from forensics.schema.facts import Value
from forensics.schema.finding import HOLE, Finding, FixStep
from forensics.timeline.catalog import Catalog, catalog
from forensics.timeline.catalog_fix import grouped, releases_of

_HARMLESS = Late(r"(?:-\d|[\w./])[\w.:/,+@%=-]{0,119}", re.ASCII)
"""What a log may put into a command: no blank, quote or other character that a shell reads, no look-alike of another
alphabet, and nothing that a program takes for an option of its own."""
_IN_QUOTES = Late(r"[\w./][\w.:/,+@%=<>!~-]{0,159}", re.ASCII)
"""What it may put between quotes of a sentence: the relations of a requirement as well."""
_FLAG = Late(r"--[A-Za-z][\w-]{0,99}", re.ASCII)
_GUARDS = frozenset({"--api-key", "--admin-api-key", "--ssl-certfile", "--ssl-keyfile", "--ssl-ca-certs"})
"""Flags without which a server is open to more people."""
_IF_SET = "if it is set"
_NEAR = 80
"""rapidfuzz ratio from which another flag may be the one that was meant."""


def steps_for(finding: Finding, case: Case) -> tuple[FixStep, ...]:
    """The steps of `finding` for the launch of `case`, in the page's order.

    A step whose `when` is false is left out, with those that help only together with it; one whose `when` the log
    cannot decide keeps it. A step with a hole that nothing fills is left out. `respell` becomes the steps that the
    release has for the flag."""
    return tuple(step for change in grouped(finding.fix) for step in _change(change, case))


def holes(step: FixStep) -> tuple[str, ...]:
    """Names that a step takes from the log: `rule.capture` or a fact."""
    texts = (step.name, step.value or "", step.version, step.do)
    return tuple(dict.fromkeys(found["name"] for text in texts for found in HOLE.finditer(text)))


def _change(change: tuple[FixStep, ...], case: Case) -> Iterable[FixStep]:
    leader = change[0]
    if leader.when is not None:
        value = evaluate(leader.when, case).value
        if value is False:
            return ()
        note = leader.note or f"where {readable(leader.when.text, case.rules)}"
        leader = replace(leader, when=None) if value is True else replace(leader, note=note)
        change = (leader, *change[1:])
    made = [_filled(_asked(step, case), case) for step in change]
    if any(step is None for step in made):
        return ()
    return [part for step in made if step is not None for part in _respelled(step, case)]


def _asked(step: FixStep, case: Case) -> FixStep:
    """A flag to be taken out of a launch that does not say whether it has it is a step for those that do."""
    stated = case.launch.facts.get(f"args.{catalog().dest(step.name)}")
    if step.kind != "flag" or step.op != "remove" or step.with_above or stated is not None or HOLE.search(step.name):
        return step
    return replace(step, note="; ".join(part for part in (_IF_SET, step.note) if part))


def _filled(step: FixStep, case: Case) -> FixStep | None:
    """The step with its holes filled; None where one stays open."""
    if not holes(step):
        return step
    name = _text(step.name, case, _FLAG if step.kind == "flag" else _HARMLESS)
    value, version, do = (_text(text, case, _HARMLESS) for text in (step.value or "", step.version, step.do))
    if name is None or value is None or version is None or do is None:
        return None
    known = step.kind == "flag" and name != step.name
    if known and step.op == "set" and not (leaves_open(value) or catalog().listed(name)):
        return None  # a path or a module that a message names would be loaded and run
    return replace(
        step,
        name=name,
        value=value if step.value is not None else None,
        version=version,
        do=do,
        literal=step.literal or known,
    )


def _text(text: str, case: Case, allowed: Late[str]) -> str | None:
    parts, at = [], 0
    for found in HOLE.finditer(text):
        quoted = text[at : found.start()].endswith("'") and text[found.end() :].startswith("'")
        value = _told(found["name"], case, _IN_QUOTES if quoted else allowed)
        value = found["else"] if value is None else value
        if value is None:
            return None
        parts += [text[at : found.start()], value]
        at = found.end()
    return "".join([*parts, text[at:]])


def _told(name: str, case: Case, allowed: Late[str]) -> str | None:
    """What the log says under a name: the first match of the rule that captured it, else the fact."""
    rule, _, capture = name.partition(".")
    value: Value = None
    if rule in case.rules:
        captured = (dict(m.captures).get(capture) for m in (case.signals[rule].matches if rule in case.signals else ()))
        value = next((v for v in captured if v is not None), None)
    elif (fact := case.launch.facts.get(name)) is not None:
        value = fact.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None or isinstance(value, bool) else str(value)
    return text if allowed.fullmatch(text) and mask(text) == text else None


def _respelled(step: FixStep, case: Case) -> tuple[FixStep, ...]:
    """`respell`: the flag out, and in what the release calls it; without a successor, the flag that may be meant."""
    if step.op != "respell":
        return (step,)
    known = catalog()
    release = releases_of(case.launch.version, known)[-1]
    if step.name in _GUARDS:
        do = f"find out why the parser refuses {step.name}; a server without it is open to others"
        return (replace(step, kind="other", op="", name="", value=None, do=do, runnable=False),)
    out = replace(step, op="remove", value=None, literal=True)
    failure = case.launch.failure(case.launch.first_failure)
    given = _given(step.name, failure.text if failure is not None else "")
    successor = _successor(step.name, given, release, known)
    if successor:
        return (out, *successor)
    meant = "" if step.name in known.flags else _meant(step.name, release, known)
    return (replace(out, note=f"perhaps {meant} is meant" if meant else step.note),)


def _successor(name: str, given: str | None, release: str, known: Catalog) -> tuple[FixStep, ...]:
    found = known.renames(name)
    if found is None or found.inverted:
        return ()
    steps = []
    for part in found.new:
        new, equals, value = part.partition("=")
        kind = "flag" if new.startswith("--") else "env"
        life = known.flag_lifetime(new) if kind == "flag" else known.env_lifetime(new)
        if life is None or known.exists(life, release) is False:
            return ()
        wanted = value if equals else given
        if wanted is None and known.takes_value(new):
            wanted = "<a value>"
        steps.append(
            FixStep(
                kind,
                "set",
                new,
                wanted,
                note=f"replaces {name}",
                runnable=not (wanted or "").startswith("<"),
                with_above=True,
                literal=True,
            )
        )
    return tuple(steps)


def _given(name: str, text: str) -> str | None:
    """The value that follows a flag in the message which refuses it."""
    found = re.search(rf"{re.escape(name)}[= ]([^\s-]\S{{0,119}})", text)
    if found is None or not _HARMLESS.fullmatch(found[1]) or mask(found[0]) != found[0]:
        return None
    return found[1]


def _meant(name: str, release: str, known: Catalog) -> str:
    from rapidfuzz import fuzz, process  # asked for misspelt flags only

    alive = [n for n in known.flags if (life := known.flag_lifetime(n)) and known.exists(life, release) is not False]
    best = process.extractOne(name, sorted(alive), scorer=fuzz.ratio, score_cutoff=_NEAR)
    return best[0] if best else ""
