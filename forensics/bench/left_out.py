"""Leave one case out: would a finding written without this log still catch it?

Of a cause with two or more logs each log is held out in turn. The finding loses its own log blocks, and the rules that
it names lose every wording that, among the logs of this cause, only the held-out one shows. What is left must still
name the cause. A wording that was read elsewhere (another report, the program's source) goes as well where no second
log shows it, so that the figure is a lower bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from forensics.analysis import Reading, read, report
from forensics.bench.cases import HEALTHY, UNDETERMINED, BenchCase
from forensics.bench.run import Answer, answer, neutral
from forensics.diagnose.grounds import signals_in
from forensics.knowledge.store import Knowledge
from forensics.rulebook.patterns import compiled
from forensics.schema.finding import Finding
from forensics.schema.options import Options
from forensics.schema.signal import Rule

Shown = dict[str, frozenset[str]]
"""By rule id the patterns that a log shows."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One case with the answer of a knowledge base that was not written from it, and how many wordings it lost."""

    answer: Answer
    wordings: int


def repeated(cases: Iterable[BenchCase]) -> dict[str, list[BenchCase]]:
    """Cases that hold enough, by cause, of causes with two or more of them."""
    groups: defaultdict[str, list[BenchCase]] = defaultdict(list)
    for case in cases:
        if case.enough and case.cause not in (*HEALTHY, UNDETERMINED):
            groups[case.cause].append(case)
    return {cause: group for cause, group in groups.items() if len(group) > 1}


def hold_out(cases: Sequence[BenchCase], knowledge: Knowledge, options: Options) -> tuple[HeldOut, ...]:
    """Every case of a repeated cause, diagnosed without what only it supports."""
    found: list[HeldOut] = []
    for cause, group in sorted(repeated(cases).items()):
        finding = knowledge.finding(cause)
        if finding is None:
            continue
        rules = _named(finding, knowledge)
        shown = {case.id: _shown(case, rules, knowledge, options) for case in group}
        for case in group:
            others = [shown[other.id] for other in group if other is not case]
            found.append(_held_out(case, finding, rules, shown[case.id], others, knowledge, options))
    return tuple(found)


def _named(finding: Finding, knowledge: Knowledge) -> tuple[Rule, ...]:
    """Rules that the finding's grounds and explanations name."""
    names = dict.fromkeys((*signals_in(finding.grounds, knowledge.rules), *finding.explains))
    return tuple(knowledge.rules[name] for name in names if name in knowledge.rules)


def _shown(case: BenchCase, rules: Sequence[Rule], knowledge: Knowledge, options: Options) -> Shown:
    """Which wordings of these rules a log shows, on the lines where the rules matched."""
    with neutral(case) as path:
        reading: Reading = read([str(path)], replace(options, symptom=case.symptom), knowledge)
        found: dict[str, frozenset[str]] = {}
        for rule in rules:
            signals = [c.signals[rule.id] for c in reading.cases if rule.id in c.signals]
            texts = [reading.table.text(m.row) for s in signals for m in s.matches]
            found[rule.id] = frozenset(p for p in rule.patterns if any(compiled(p).search(t) for t in texts))
        return found


def _held_out(
    case: BenchCase,
    finding: Finding,
    rules: Sequence[Rule],
    own: Shown,
    others: Sequence[Shown],
    knowledge: Knowledge,
    options: Options,
) -> HeldOut:
    kept = dict(knowledge.rules)
    lost = 0
    for rule in rules:
        only = {p for p in own[rule.id] if not any(p in other[rule.id] for other in others)}
        if only:
            lost += len(only)
            kept[rule.id] = replace(rule, patterns=tuple(p for p in rule.patterns if p not in only))
    bare = replace(finding, logs=())
    poorer = replace(
        knowledge, rules=kept, findings=tuple(bare if f.id == finding.id else f for f in knowledge.findings)
    )
    wanted = replace(options, symptom=case.symptom)
    with neutral(case) as path:
        return HeldOut(answer(case, report(read([str(path)], wanted, poorer), wanted, poorer)), lost)
