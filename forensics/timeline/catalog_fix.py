"""Checks a fix against the releases that a log can come from: spelling, existence and value of flags and variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forensics.frozen import frozen
from forensics.rulebook.versions import in_range, older
from forensics.schema.facts import VersionInterval
from forensics.schema.finding import FixStep
from forensics.timeline.catalog import Catalog, catalog

MAX_CHAIN = 5


@frozen
class Form:
    """How a step is written for one release: the steps, or the reason why there is none."""

    steps: tuple[FixStep, ...] = ()
    reason: str = ""


def check_fix(step: FixStep, interval: VersionInterval) -> tuple[FixStep, ...]:
    """The step as the releases of the interval understand it.

    Unchanged where all of them do. Where the spelling or the accepted value differs, one step per form, each with its
    `versions`. Where none of them can apply it, one `other` step that says why (never runnable). Steps other than
    flags and environment variables are checked against their own `versions`; an upgrade of sglang is offered to older
    releases only.
    """
    known = catalog()
    releases = releases_of(interval, known)
    forms = [(release, _form(step, release, known)) for release in releases]
    groups = _grouped(forms)
    usable = [g for g in groups if g[2].steps]
    if not usable:
        reason = groups[0][2].reason if groups else "no release fits"
        return (_dropped(step, reason),)
    if len(groups) == 1:
        return usable[0][2].steps
    result: list[FixStep] = []
    for first, last, form in usable:
        for found in form.steps:
            text = _range(first, last, first == releases[0], last == releases[-1])
            own = [r for r in releases if step.versions and in_range(r, step.versions)]
            same = own[:1] == [first] and own[-1:] == [last]  # the page's own range says it already
            result.append(replace(found, versions=step.versions if same else _joined(step.versions, text)))
    return tuple(result)


def grouped(steps: Sequence[FixStep]) -> list[tuple[FixStep, ...]]:
    """The steps as changes: each is an alternative of its own, with the steps that help only together with it."""
    groups: list[list[FixStep]] = []
    for step in steps:
        if step.with_above and groups:
            groups[-1].append(step)
        else:
            groups.append([step])
    return [tuple(group) for group in groups]


def check_changes(steps: Sequence[FixStep], interval: VersionInterval) -> list[tuple[FixStep, ...]]:
    """The changes of a fix as the releases of the interval understand them: one for each spelling of the leading step,
    with the forms of its companions that belong to the same releases."""
    changes: list[tuple[FixStep, ...]] = []
    for leader, *others in grouped(steps):
        forms = [check_fix(step, interval) for step in others]
        for found in grouped(check_fix(leader, interval)):
            joined = [_fitting(form, found[0]) for form in forms]
            changes.append((*found, *(replace(s, with_above=True) for s in joined)))
    return changes


def _fitting(forms: tuple[FixStep, ...], leader: FixStep) -> FixStep:
    """The form of a companion for the releases of its leader; the latest one where the ranges differ."""
    return next((f for f in forms if f.versions == leader.versions), forms[-1])


def releases_of(interval: VersionInterval, known: Catalog) -> list[str]:
    """Releases inside an interval, oldest first; for a build between releases the one before it. Open ends reach to the
    oldest and the newest release that was read."""
    low, high = interval.low or known.read[0], interval.high or known.newest
    if older(high, low):
        return [low if not known.before(low) else known.newest]
    found = [r for r in known.releases if not older(r, low) and not older(high, r)]
    return found or [known.before(low) or known.read[0]]


def _grouped(forms: list[tuple[str, Form]]) -> list[tuple[str, str, Form]]:
    groups: list[tuple[str, str, Form]] = []
    for release, form in forms:
        if groups and groups[-1][2].steps == form.steps:
            groups[-1] = (groups[-1][0], release, form)
        else:
            groups.append((release, release, form))
    return groups


def _range(first: str, last: str, from_start: bool, to_end: bool) -> str:
    parts = [] if from_start else [f">={first}"]
    return ",".join(parts if to_end else [*parts, f"<={last}"])


def _joined(own: str, found: str) -> str:
    return ",".join(p for p in (own, found) if p)


def _dropped(step: FixStep, reason: str) -> FixStep:
    value = step.version if step.kind == "package" else step.value
    what = f"{step.op} {step.name}" + (f"={value}" if value is not None else "")
    return FixStep("other", do=f"not applicable here: {what} ({reason})", versions=step.versions)


# -- one release --------------------------------------------------------------------------------------------------


def _form(step: FixStep, release: str, known: Catalog) -> Form:
    if step.versions and not in_range(release, step.versions):
        return Form(reason=f"it is meant for sglang {step.versions}")
    if step.kind == "package" and step.name == "sglang" and step.op == "at-least" and not older(release, step.version):
        return Form(reason=f"sglang here is {release}, which has it already")
    if step.kind not in ("flag", "env") or step.literal:
        return Form((step,))
    if step.kind == "flag" and known.flag(step.name) is None:
        return Form((replace(step, runnable=False, note=_noted(step, "no server option of a release that was read")),))
    if _there(step, release, known) is not False:
        return _valued(step, release, known)
    for other in _relatives(step, known):
        if all(_there(s, release, known) is not False for s in other):
            forms = [_valued(s, release, known) for s in other]
            if all(f.steps for f in forms):
                return Form(tuple(s for f in forms for s in f.steps))
    return Form(reason=_absence(step, known))


def _there(step: FixStep, release: str, known: Catalog) -> bool | None:
    """Whether a release knows the name; None where nobody knows (also: a variable that is not sglang's own)."""
    if step.kind == "env":
        life = known.env_lifetime(step.name)
        return known.exists(life, release) if life else None
    life = known.flag_lifetime(step.name)
    if life is None:
        found = known.flag(step.name)
        life = known.flag_lifetime(found[0]) if found else None
    return known.exists(life, release) if life else None


def _relatives(step: FixStep, known: Catalog) -> list[tuple[FixStep, ...]]:
    """Newer and older spellings of a step, nearest first."""
    result: list[tuple[FixStep, ...]] = []
    current: tuple[FixStep, ...] = (step,)
    for _ in range(MAX_CHAIN):
        if len(current) != 1 or (newer := _newer(current[0], known)) is None:
            break
        current = newer
        result.append(current)
    names = [step.name]
    for _ in range(MAX_CHAIN):
        names = [old for name in names for old in known.renamed_from(name)]
        result += [(_renamed(step, old, step.value, step.name),) for old in names]
    return result


def _newer(step: FixStep, known: Catalog) -> tuple[FixStep, ...] | None:
    found = known.renames(step.name)
    if found is None or found.inverted:
        return None
    steps = []
    for part in found.new:
        name, equals, value = part.partition("=")
        if equals and step.op == "remove":
            steps.append(_renamed(step, name, None, step.name))
        else:
            steps.append(_renamed(step, name, value if equals else step.value, step.name))
    return (*steps[:1], *(replace(s, with_above=True) for s in steps[1:]))


def _renamed(step: FixStep, name: str, value: str | None, other: str) -> FixStep:
    kind = "flag" if name.startswith("--") else "env"
    renamed = replace(step, kind=kind, name=name, value=value, note=_noted(step, f"other releases call it {other}"))
    lacks_value = kind == "flag" and step.op == "set" and value is None and catalog().takes_value(name)
    if lacks_value:
        return replace(renamed, runnable=False, note=_noted(renamed, "it takes a value here"))
    return renamed


def _noted(step: FixStep, text: str) -> str:
    return "; ".join(p for p in (step.note, text) if p)


def _valued(step: FixStep, release: str, known: Catalog) -> Form:
    """The step with a value that the release accepts."""
    if step.kind != "flag" or step.op != "set" or step.value is None:
        return Form((step,))
    choices = known.choices(step.name, release)
    if choices is None or step.value in choices:
        return Form((step,))
    found = known.flag(step.name)
    renames = found[1].get("choice_renames", {}) if found else {}
    for old, entry in renames.items():
        if step.value == old and entry["to"] in choices:
            return Form((replace(step, value=entry["to"]),))
        if step.value == entry["to"] and old in choices:
            return Form((replace(step, value=old),))
    return Form(reason=f"sglang {release} takes no {step.name}={step.value}: {', '.join(sorted(choices))}")


def _absence(step: FixStep, known: Catalog) -> str:
    life = known.env_lifetime(step.name) if step.kind == "env" else known.flag_lifetime(step.name)
    if life is None or life.first is None:
        return f"no release that was read has {step.name}"
    if life.last is None:
        return f"{step.name} came with sglang {life.first}"
    return f"sglang has {step.name} from {life.first} to {life.last}"
