"""Leave one case out: would a finding written without this log still catch it?

Of a cause with two or more logs each log is held out in turn. The finding's log blocks become the failing parts of the
other logs, and the rules that it names lose every wording that, among the logs of this cause, only the held-out one
shows. What is left must still name the cause. Two figures come of that, and a third of another kind:

- strict: a wording goes wherever no second log shows it, whatever it was read in. A lower bound.
- from the program: a wording that was found in the file of a release that its rule names as its source
  (`tools/check_wordings.py` looks it up; wordings.py knows the result) was read in the program and not in the log.
  Whoever had never seen the log would have it all the same, so it stays.
- drafted: drafts.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from forensics.analysis import Reading, read_table, report
from forensics.bench.cases import HEALTHY, UNDETERMINED, BenchCase
from forensics.bench.drafts import Drafted, drafted_from
from forensics.bench.run import Answer, answer, neutral
from forensics.bench.wordings import in_program
from forensics.diagnose.grounds import signals_in
from forensics.engine.begin import begin
from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.rulebook.patterns import compiled
from forensics.schema.finding import Finding, LogBlock
from forensics.schema.options import Options
from forensics.schema.signal import Rule

MAX_EXCERPT = 400


@frozen
class Log:
    """One log of a repeated cause, scanned once for all that is asked of it."""

    case: BenchCase
    table: EventTable
    options: Options

    def read(self, knowledge: Knowledge) -> Reading:
        """The log as a knowledge base reads it."""
        return read_table(self.table, self.options, knowledge)

    def answer(self, knowledge: Knowledge) -> Answer:
        """What a knowledge base says about it."""
        return answer(self.case, report(self.read(knowledge), self.options, knowledge))


@frozen
class Shown:
    """What one log gives to a finding that is written from it: by rule id the wordings that it shows with the lines
    that show them, and the lines of its first failure."""

    wordings: dict[str, dict[str, tuple[str, ...]]]
    excerpt: str


@frozen
class HeldOut:
    """One case with the answers of a knowledge base that was not written from it. `answer`: without each of the
    `wordings` that only this log shows; `informed`: with those of them back that were found in the program, of which
    there are `read`; `drafted`: with drafts from the other logs in the place of the finding and its rules."""

    answer: Answer
    wordings: int
    informed: Answer
    read: int
    drafted: Answer


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
        if finding is not None:
            with _opened(group, options) as logs:
                found += _group(finding, logs, knowledge)
    return tuple(found)


@contextmanager
def _opened(group: Sequence[BenchCase], options: Options) -> Iterator[tuple[Log, ...]]:
    with ExitStack() as stack:
        logs = []
        for case in group:
            wanted = replace(options, symptom=case.symptom)
            with begin([str(stack.enter_context(neutral(case)))], wanted) as begun:
                logs.append(Log(case, begun.scan.table(), wanted))
        yield tuple(logs)


def _group(finding: Finding, logs: Sequence[Log], knowledge: Knowledge) -> Iterator[HeldOut]:
    """All logs of one cause, each held out in turn."""
    rules = _named(finding, knowledge)
    shown = [_shown(log, rules, knowledge) for log in logs]
    without = _without(finding, knowledge)
    drafts = [drafted_from(report(log.read(without), log.options, without), without, n) for n, log in enumerate(logs)]
    for number, log in enumerate(logs):
        others = [s for n, s in enumerate(shown) if n != number]
        given = [d for n, d in enumerate(drafts) if n != number]
        yield _held_out(log, finding, shown[number], others, knowledge, _with_drafts(log, without, given))


def _named(finding: Finding, knowledge: Knowledge) -> tuple[Rule, ...]:
    """Rules that the finding's grounds and explanations name."""
    names = dict.fromkeys((*signals_in(finding.grounds, knowledge.rules), *finding.explains))
    return tuple(knowledge.rules[name] for name in names if name in knowledge.rules)


def _shown(log: Log, rules: Sequence[Rule], knowledge: Knowledge) -> Shown:
    """Which wordings of these rules a log shows, on the lines where the rules matched."""
    reading = log.read(knowledge)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for rule in rules:
        signals = [c.signals[rule.id] for c in reading.cases if rule.id in c.signals]
        texts = dict.fromkeys(reading.table.text(m.row) for s in signals for m in s.matches)
        lines = {p: tuple(t for t in texts if compiled(p).search(t)) for p in rule.patterns}
        found[rule.id] = {p: told for p, told in lines.items() if told}
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
    log: Log, finding: Finding, own: Shown, others: Sequence[Shown], knowledge: Knowledge, drafted: Answer
) -> HeldOut:
    only = {
        rule: {p: texts for p, texts in shown.items() if not any(p in other.wordings[rule] for other in others)}
        for rule, shown in own.wordings.items()
    }
    logs = tuple(LogBlock("match", other.excerpt, finding.span) for other in others if other.excerpt)
    finding = replace(finding, logs=logs)
    read = {
        rule: {p for p, texts in shown.items() if in_program(knowledge.rules[rule], p, texts)}
        for rule, shown in only.items()
    }
    strict = log.answer(_poorer(finding, {rule: frozenset(shown) for rule, shown in only.items()}, knowledge))
    there = sum(map(len, read.values()))
    unread = {rule: frozenset(shown) - read[rule] for rule, shown in only.items()}
    informed = log.answer(_poorer(finding, unread, knowledge)) if there else strict
    return HeldOut(strict, sum(map(len, only.values())), informed, there, drafted)


def _poorer(finding: Finding, gone: Mapping[str, frozenset[str]], knowledge: Knowledge) -> Knowledge:
    """A knowledge base with this form of the finding and without these wordings (by rule id)."""
    kept = dict(knowledge.rules)
    for name, patterns in gone.items():
        if patterns:
            kept[name] = replace(kept[name], patterns=tuple(p for p in kept[name].patterns if p not in patterns))
    findings = tuple(finding if f.id == finding.id else f for f in knowledge.findings)
    return replace(knowledge, rules=kept, findings=findings)


def _without(finding: Finding, knowledge: Knowledge) -> Knowledge:
    """A knowledge base that does not know this cause: neither its finding nor the rules that no other finding names."""
    findings = tuple(f for f in knowledge.findings if f.id != finding.id)
    elsewhere = {name for f in findings for name in (*signals_in(f.grounds, knowledge.rules), *f.explains)}
    own = {rule.id for rule in _named(finding, knowledge)} - elsewhere
    return replace(knowledge, findings=findings, rules={n: r for n, r in knowledge.rules.items() if n not in own})


def _with_drafts(log: Log, knowledge: Knowledge, drafts: Sequence[Drafted]) -> Answer:
    """What a knowledge base says that has these drafts; any of them stands for the cause."""
    rules = {**knowledge.rules, **{r.id: r for d in drafts for r in d.rules}}
    findings = (*knowledge.findings, *(d.finding for d in drafts if d.finding is not None))
    said = log.answer(replace(knowledge, rules=rules, findings=findings))
    names = {d.finding.id for d in drafts if d.finding is not None}
    told = tuple((log.case.cause if name in names else name, verdict, kind) for name, verdict, kind in said.hypotheses)
    return replace(said, hypotheses=told)
