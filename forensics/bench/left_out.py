"""Leave one case out: would a finding written without this log still catch it?

Of a cause with two or more logs each log is held out in turn. The finding's log blocks become the failing parts of the
other logs, and the rules that it names lose every wording that, among the logs of this cause, only the held-out one
shows. What is left must still name the cause. Two figures come of that:

- strict: a wording goes wherever no second log shows it, whatever it was read in. A lower bound.
- from the program: a wording of a rule whose `sources` name a file of a release (`owner/repo@release/path`) was read in
  the program and not in the log. Whoever had never seen the log would have it all the same, so it stays.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from forensics.analysis import Reading, read, report
from forensics.bench.cases import HEALTHY, UNDETERMINED, BenchCase
from forensics.bench.run import Answer, answer, neutral
from forensics.diagnose.grounds import signals_in
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.rulebook.patterns import compiled
from forensics.schema.finding import Finding, LogBlock
from forensics.schema.options import Options
from forensics.schema.signal import Rule

MAX_EXCERPT = 400


@frozen
class Shown:
    """What one log gives to a finding that is written from it: by rule id the wordings that it shows, and the lines of
    its first failure."""

    wordings: dict[str, frozenset[str]]
    excerpt: str


PROGRAM = re.compile(r"[\w.-]+/[\w.-]+@[\w.-]+/[\w./-]+\.\w{1,5}")
"""A source that is a file of a release of a program: `sgl-project/sglang@v0.5.3/python/sglang/srt/server_args.py`."""


@frozen
class HeldOut:
    """One case with the answers of a knowledge base that was not written from it. `answer`: without each of the
    `wordings` that only this log shows; `informed`: with those of them back that were read in the program, of which
    there are `read`."""

    answer: Answer
    wordings: int
    informed: Answer
    read: int


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
        return Shown(found, _excerpt(reading))


def _excerpt(reading: Reading) -> str:
    """The lines that state the last failing launch's first failure, with its stack."""
    failing = [c for c in reading.cases if c.launch.first_failure is not None]
    failure = failing[-1].launch.failure(failing[-1].launch.first_failure) if failing else None
    if failure is None:
        return ""
    rows = sorted({failure.row, *(r for r in failure.rows if r <= failure.row)})[-MAX_EXCERPT:]
    return "\n".join(reading.table.text(r) for r in rows)


def _held_out(
    case: BenchCase,
    finding: Finding,
    rules: Sequence[Rule],
    own: Shown,
    others: Sequence[Shown],
    knowledge: Knowledge,
    options: Options,
) -> HeldOut:
    elsewhere = {r.id: frozenset().union(*(other.wordings[r.id] for other in others)) for r in rules}
    only = {r.id: own.wordings[r.id] - elsewhere[r.id] for r in rules}
    logs = tuple(LogBlock("match", other.excerpt, finding.span) for other in others if other.excerpt)
    finding = replace(finding, logs=logs)
    lost = sum(len(patterns) for patterns in only.values())
    read_there = {r.id: only[r.id] for r in rules if from_program(r)}
    there = sum(len(patterns) for patterns in read_there.values())
    strict = _answered(case, finding, only, knowledge, options)
    kept = {name: patterns for name, patterns in only.items() if name not in read_there}
    informed = _answered(case, finding, kept, knowledge, options) if there else strict
    return HeldOut(strict, lost, informed, there)


def from_program(rule: Rule) -> bool:
    """Whether a rule says which file of which release prints its wordings."""
    return any(PROGRAM.fullmatch(source) for source in rule.sources)


def _answered(
    case: BenchCase, finding: Finding, gone: Mapping[str, frozenset[str]], knowledge: Knowledge, options: Options
) -> Answer:
    """The answer of a knowledge base with this form of the finding and without these wordings (by rule id)."""
    kept = dict(knowledge.rules)
    for name, patterns in gone.items():
        if patterns:
            kept[name] = replace(kept[name], patterns=tuple(p for p in kept[name].patterns if p not in patterns))
    findings = tuple(finding if f.id == finding.id else f for f in knowledge.findings)
    poorer = replace(knowledge, rules=kept, findings=findings)
    wanted = replace(options, symptom=case.symptom)
    with neutral(case) as path:
        return answer(case, report(read([str(path)], wanted, poorer), wanted, poorer))
