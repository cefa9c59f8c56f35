"""Launches of the input as experiments: which hypotheses a launch refutes, weakens or shows.

- A launch that failed in the same way although the setting that a cause needs was changed away refutes that cause.
- A launch that has a finding's fix and failed in the same way refutes it when it had all of the fix's alternatives
  that can be tried, else it weakens it.
- A failing and a good launch that differ in one variable show the cause that this variable belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from forensics.diagnose.candidates import Candidate, Weighed
from forensics.diagnose.convert import stage_index
from forensics.diagnose.direction import away
from forensics.diagnose.grounds import AGAINST, FOR, Ground
from forensics.diagnose.variables import Trials, Varied, spellings
from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import evaluate
from forensics.rulebook.versions import compare
from forensics.schema.facts import Value
from forensics.schema.finding import Finding, FixStep
from forensics.schema.launch import Failure, Launch
from forensics.schema.span import Span
from forensics.timeline.attempts import same_failure
from forensics.timeline.catalog import catalog
from forensics.timeline.catalog_fix import grouped
from forensics.timeline.stages import hot_lines

MAX_ALIKE = 16
"""Launches with different settings that are held against each other; the latest ones."""
GOOD_HAS_IT = "the good launch has it too"
SAME_FACTS = frozenset({"launch.role", "launch.device", "model.architecture", "weights.quantization"})
OTHER_THING = frozenset({"model_path", "disaggregation_mode", "device", "nnodes"})
"""Fields that make a launch another thing, not another attempt at the same one."""
TRUE_WORDS = {"1", "true", "yes", "on", ""}


@frozen
class Pair:
    """A failing launch and a good one that differ in one variable."""

    bad: Case
    good: Case
    variable: Varied


def first_failure(case: Case) -> Failure | None:
    """The launch's first failure."""
    return case.launch.failure(case.launch.first_failure)


def failing_alike(case: Case, others: Sequence[Case], trials: Trials) -> tuple[Case, ...]:
    """The other launches that failed as this one did: the first with each setting, at most `MAX_ALIKE` of them."""
    seen = {trials.settings(case.launch)}
    found: list[Case] = []
    for other in others:
        settings = trials.settings(other.launch)
        if settings not in seen and same_failure(case.launch, other.launch):
            seen.add(settings)
            found.append(other)
    return tuple(found[-MAX_ALIKE:])


def is_good(case: Case, than: Case) -> bool:
    """Whether a launch works where another failed: no failure of its own, and it went beyond that point."""
    failure = first_failure(than)
    if case.launch.first_failure is not None or failure is None or case.launch.reached != "serving":
        return False
    if stage_index(failure.stage) < stage_index("serving"):
        return True
    return _served(case)


def _served(case: Case) -> bool:
    """Whether requests were answered after start-up: decode steps (or good answers) in the launch's own lines."""
    return _batches(case, "decode") > 0 or _batches(case, "prefill") > 2


def _batches(case: Case, kind: str) -> int:
    """Batch lines of a kind between the launch's first row and the next launch."""
    series = case.table.series.get(kind)
    return 0 if series is None else len(series.row[hot_lines(series, case.table, case.launch.rows)])


def pairs(case: Case, alike: Sequence[Case], everyone: Sequence[Case], trials: Trials) -> tuple[Pair, ...]:
    """Single-variable comparisons that concern this launch's failure. `alike`: launches that failed as it did. None
    where the failure is about what the host shares: then the other launches are its circumstances, no experiment."""
    if of_environment(case):
        return ()
    found = []
    for one in (case, *alike):
        seen: set[int] = set()
        if _by_chance(one, everyone, trials):
            continue
        for good in everyone:
            settings = trials.settings(good.launch)
            if settings in seen or not is_good(good, one) or not comparable(one.launch, good.launch):
                continue
            seen.add(settings)
            changed = trials.varied(one.launch, good.launch)
            if len(changed) == 1 and changed[0].name not in OTHER_THING:
                found.append(Pair(one, good, changed[0]))
    return tuple(found[:MAX_ALIKE])


def _by_chance(bad: Case, everyone: Sequence[Case], trials: Trials) -> bool:
    """Whether a launch with the very settings of a failing one works: then they alone do not make it fail, and one that
    works with others shows nothing."""
    same = trials.settings(bad.launch)
    return any(
        trials.settings(c.launch) == same and is_good(c, bad) and comparable(bad.launch, c.launch) for c in everyone
    )


_ENVIRONMENT = re.compile(
    r"[Aa]ddress already in use|Errno 98\b|[Pp]ort \S+ is (?:already )?in use|No space left on device|Bus error"
    r"|Name or service not known|Temporary failure in name resolution|No such file or directory|\bXid\b"
    r"|unavailable|Connection refused|No route to host|memory capacity is unbalanced"
)
_GPU_MEMORY = re.compile(r"out of memory|[Nn]ot enough memory|memory allocation")


def of_environment(case: Case) -> bool:
    """Whether the first failure is about something that launches share: a port, a disk, a name, the network; or GPU
    memory while an earlier launch of the same log was never seen to end, so that it may still hold it."""
    failure = first_failure(case)
    if failure is None:
        return False
    if _ENVIRONMENT.search(failure.text):
        return True
    return bool(_GPU_MEMORY.search(failure.text)) and any(_still_there(c.launch, case.launch) for c in case.earlier)


def _still_there(earlier: Launch, launch: Launch) -> bool:
    """Whether an earlier launch of the same source served and shows no end."""
    same = bool(set(earlier.sources) & set(launch.sources))
    return same and earlier.reached == "serving" and earlier.ended in ("running", "log-ends")


def comparable(one: Launch, other: Launch) -> bool:
    """Whether two launches agree in what is no setting: packages, GPU, model and role, as far as both state them."""
    for name in sorted(one.facts.keys() & other.facts.keys()):
        same = name.startswith(("version.", "gpu.")) or name in SAME_FACTS
        if same and str(one.facts[name].value) != str(other.facts[name].value):
            return False
    return not other_release(one, other)


def other_release(one: Launch, other: Launch) -> bool:
    """Whether two launches are known to be of different releases."""
    a, b = one.version, other.version
    if a.exact and b.exact:
        return compare(a.exact, b.exact) != 0
    return _before(a.high, b.low) or _before(b.high, a.low)


def _before(high: str | None, low: str | None) -> bool:
    return high is not None and low is not None and compare(high, low) == -1


def comparison_ground(found: Candidate, known: Sequence[Pair]) -> Ground | None:
    """The decisive ground of a finding that the changed variable belongs to."""
    if found.must is False or found.applies is False:
        return None
    for pair in known:
        if concerns(found.finding, pair.variable) and _gone(found.finding, pair):
            why = (
                f"single-variable comparison: {pair.bad.launch.id} fails, {pair.good.launch.id} works, and only "
                f"{pair.variable.text()} differs"
            )
            return Ground(
                FOR, "decisive", f"only {pair.variable.fact} differs", True, why, where=_places(pair), observed=True
            )
    return None


def still_there(found: Candidate, known: Sequence[Pair], weighed: Weighed) -> Ground | None:
    """Ground against a finding all of whose settings and warnings the good launch of a pair has as well."""
    for pair in known:
        if concerns(found.finding, pair.variable) or not _constant(found.finding, pair, weighed):
            continue
        why = f"{pair.good.launch.id} works and has all that this needs; only {pair.variable.text()} differs"
        return Ground(AGAINST, "against", GOOD_HAS_IT, True, why, where=_places(pair), observed=True)
    return None


def refuted_by(finding: Finding, case: Case, alike: Sequence[Case], weighed: Weighed) -> Ground | None:
    """The attempt that rules a finding out for this launch's failure, or None."""
    group = (case, *alike)
    having = [c for c in group if weighed.of(finding, c).possible]
    lacking = [c for c in group if having and not weighed.of(finding, c).possible]
    for other in lacking:
        variable = _setting_changed(finding, having, other, weighed.trials)
        if variable is not None:
            why = f"{other.launch.id} failed in the same way with {variable.text()}, so what it needs was not there"
            return Ground(
                AGAINST, "excludes", f"tried {variable.fact}", True, why, where=_failure_place(other, variable.where)
            )
    changes = [g for g in grouped(finding.fix) if g[0].kind in ("flag", "env") and g[0].op in ("set", "remove", "")]
    tried = {i: c for i, g in enumerate(changes) for c in group if _had(c, g, group)}
    if changes and len(tried) == len(changes):
        other = next(iter(tried.values()))
        why = f"{other.launch.id} had its fix ({step_text(changes[0][0])}) and failed in the same way"
        return Ground(
            AGAINST, "excludes", "tried its fix and same failure", True, why, where=_failure_place(other, None)
        )
    return None


def weakened_by(finding: Finding, case: Case, alike: Sequence[Case], weighed: Weighed) -> tuple[Ground, ...]:
    """Grounds against from attempts that changed what a finding concerns, without effect. Each attempt is held
    against the earlier launch of the same failure that differs least from it."""
    group = sorted((case, *alike), key=_order)
    key = finding.id, tuple(id(c.launch) for c in group)
    found = weighed.weakened.get(key)
    if found is None:
        found = weighed.weakened[key] = tuple(_without_effect(finding, group, weighed.trials))
    return found


def _without_effect(finding: Finding, group: Sequence[Case], trials: Trials) -> Iterator[Ground]:
    for other, variables in zip(group[1:], trials.steps([c.launch for c in group]), strict=True):
        changed = next((v for v in variables if _concerned(finding, v, trials) and not away(finding, v)), None)
        if changed is not None:
            why = f"{other.launch.id} varied {changed.text()} and failed in the same way"
            where = _failure_place(other, changed.where)
            yield Ground(AGAINST, "against", f"tried {changed.fact}", True, why, where=where)


def reference(earlier: Sequence[Case], case: Case, trials: Trials) -> Case:
    """The earlier launch with the fewest differences, the first of them among equals."""
    nearest = trials.nearest([c.launch for c in earlier], case.launch)
    return next(c for c in earlier if c.launch is nearest)


def concerns(finding: Finding, variable: Varied) -> bool:
    """Whether a finding is about a variable: a step of its fix changes it, or one of its conditions asks for it."""
    names, wanted = _names_of(variable.kind, variable.name)
    if any(step.kind == variable.kind and step_name(step) in names for step in finding.fix):
        return True
    texts = [
        c.text
        for c in (*finding.applies, *finding.grounds)
        if c.strength in ("must", "decisive", "strong", "applies", "")
    ]
    return any(name in text for text in texts for name in wanted)


def _concerned(finding: Finding, variable: Varied, trials: Trials) -> bool:
    """`concerns`, asked once for a variable that many launches vary."""
    key = finding.id, variable.kind, variable.name
    found = trials.concerned.get(key)
    if found is None:
        found = trials.concerned[key] = concerns(finding, variable)
    return found


@lru_cache(maxsize=1024)
def _names_of(kind: str, name: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """All spellings of a variable, and the facts by which conditions ask for it."""
    names = spellings(name) if kind == "flag" else frozenset({name})
    group = "args" if kind == "flag" else "env"
    return names, tuple(sorted({f"{group}.{n}" for n in names} | set(_FEATURES.get(name, ()))))


def has_step(launch: Launch, step: FixStep) -> bool:
    """Whether a launch already has a fix step. Unknown counts as no."""
    name = step_name(step)
    fact = launch.facts.get(f"{'args' if step.kind == 'flag' else 'env'}.{name}")
    if step.op == "remove":
        return fact is not None and fact.value in (None, "", False, "auto")
    if fact is None or fact.value is None:
        return False
    if step.value is None:
        return fact.value not in (False, "", "auto")
    return matches(fact.value, step.value)


def matches(value: Value, wanted: str) -> bool:
    """Whether a fact has the value of a fix step (`1` and true are the same switch)."""
    if isinstance(value, bool):
        return value is (wanted.lower() in TRUE_WORDS)
    if isinstance(value, (int, float)):
        try:
            return float(wanted) == float(value)
        except ValueError:
            return False
    return str(value).lower() == wanted.lower()


def step_name(step: FixStep) -> str:
    """Field name of a flag step, environment name of an env step."""
    return catalog().dest(step.name) if step.kind == "flag" else step.name


def step_text(step: FixStep) -> str:
    """A flag or env step as one types it."""
    if step.op == "remove":
        return f"without {step.name}"
    if step.kind == "env":
        return f"{step.name}={step.value or ''}"
    return f"{step.name} {step.value}" if step.value else step.name


_FEATURES = {"disable_cuda_graph": ("feature.cuda_graph",), "kv_cache_dtype": ("kv.dtype",),
             "SGLANG_ENABLE_JIT_DEEPGEMM": ("feature.deepgemm",), "dtype": ("weights.dtype",),
             "enable_dp_attention": ("feature.dp_attention",), "disable_overlap_schedule": ("feature.overlap",),
             "speculative_algorithm": ("feature.speculative",), "disable_radix_cache": ("feature.radix_cache",),
             "enable_hierarchical_cache": ("feature.hicache",), "moe_a2a_backend": ("feature.deepep",),
             }  # fmt: skip
"""Facts that follow from one variable."""


def _setting_changed(finding: Finding, having: Sequence[Case], other: Case, trials: Trials) -> Varied | None:
    """The variable of the finding that differs between a launch that could have it and one that could not."""
    for before in having:
        for variable in trials.varied(before.launch, other.launch):
            if _concerned(finding, variable, trials):
                return variable
    return None


def _had(case: Case, change: Sequence[FixStep], group: Sequence[Case]) -> bool:
    """Whether a launch had all steps of a change, and chose one of them."""
    return all(has_step(case.launch, s) for s in change) and any(_chosen(s, group) for s in change)


def _chosen(step: FixStep, group: Sequence[Case]) -> bool:
    """Whether a launch of the group lacks the step, so that it was varied; alone it proves nothing new."""
    return any(not has_step(c.launch, step) for c in group)


def _gone(finding: Finding, pair: Pair) -> bool:
    """Whether the good launch has a value of the variable that the finding's fix allows (unknown fixes allow all)."""
    names = spellings(pair.variable.name) if pair.variable.kind == "flag" else frozenset({pair.variable.name})
    steps = [s for s in finding.fix if s.kind == pair.variable.kind and step_name(s) in names]
    if not steps:
        return True
    return any(has_step(pair.good.launch, s) for s in steps) or not any(has_step(pair.bad.launch, s) for s in steps)


def _constant(finding: Finding, pair: Pair, weighed: Weighed) -> bool:
    """Whether everything that the finding needs, but for the failure itself, is in the good launch too."""
    held = [g for g in weighed.of(finding, pair.bad).ledger.all() if g.value is True]
    needs = [g for g in held if g.strength in ("must", "decisive", "strong")]
    lost = [g for g in needs if evaluate(g.condition, pair.good).value is not True]
    return bool(held) and len(lost) <= 1 and all(g.observed for g in lost)


def _places(pair: Pair) -> tuple[Span, ...]:
    bad = first_failure(pair.bad)
    spans = [pair.variable.where] if pair.variable.where else []
    if bad is not None:
        spans.append(pair.bad.table.span(bad.row))
    serving = [m.row for m in pair.good.launch.marks if m.stage == "serving"]
    return (*spans, *(pair.good.table.span(row) for row in serving[:1]))


def _failure_place(case: Case, where: Span | None) -> tuple[Span, ...]:
    failure = first_failure(case)
    spans = [case.table.span(failure.row)] if failure else []
    return (*spans, *([where] if where else []))


def _order(case: Case) -> int:
    return int(case.launch.rows[0]) if len(case.launch.rows) else 0
