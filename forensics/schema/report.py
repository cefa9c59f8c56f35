"""The JSON contract of `forensics analyze --format json`. Only ever added to; `forensics schema` prints it."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from forensics.frozen import frozen
from forensics.schema.part import Part
from forensics.schema.span import Span


@frozen(kw_only=True)
class Where(Part):
    """A place in an input: 1-based line (counted at `\\n`) and column (code points of the raw line), byte span in the
    decompressed stream."""

    path: str
    line: int
    column: int = 1
    byte_start: int = 0
    byte_end: int = 0
    text: str | None = None

    @classmethod
    def of(cls, span: Span, text: str | None = None) -> Where:
        """The same place, with the (already masked) line text where it is to be shown."""
        return cls(
            path=span.path,
            line=span.line,
            column=span.column,
            byte_start=span.byte_start,
            byte_end=span.byte_end,
            text=text,
        )


@frozen(kw_only=True)
class Tool(Part):
    name: str = "forensics"
    version: str
    rules: int
    findings: int
    deployments: int = 0


@frozen(kw_only=True)
class SourceInfo(Part):
    """One input. `role` says what it is for. `kinds` counts lines by kind, `wrappers` names those found, `notes` say
    what was skipped or capped."""

    path: str
    bytes: int
    lines: int
    role: Literal["log", "baseline", "environment report", "history"] = "log"
    unparsed_lines: int = 0
    unattributed_lines: int = 0
    compression: str | None = None
    wrappers: list[str] = field(default_factory=list)
    node: str | None = None
    clock_skew_s: float | None = None
    kinds: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@frozen(kw_only=True)
class FactValue(Part):
    value: Any = None
    where: Where | None = None
    how: str = "stated"


@frozen(kw_only=True)
class RanksInfo(Part):
    expected: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    stages: dict[str, str] = field(default_factory=dict)


@frozen(kw_only=True)
class VersionGround(Part):
    reason: str
    where: Where | None = None


@frozen(kw_only=True)
class VersionInfo(Part):
    low: str | None = None
    high: str | None = None
    exact: str | None = None
    grounds: list[VersionGround] = field(default_factory=list)


@frozen(kw_only=True)
class FirstFailure(Part):
    stage: str
    rank: str | None = None
    reporters: list[str] = field(default_factory=list)
    suspect_ranks: list[str] = field(default_factory=list)
    suspect_why: str = ""
    where: Where
    text: str
    failure: str | None = None
    component: str = ""
    context: list[Where] = field(default_factory=list)


@frozen(kw_only=True)
class FailureInfo(Part):
    id: str
    role: Literal["root", "cascade", "teardown", "advice"]
    outcome: str
    count: int
    ranks: list[str] = field(default_factory=list)
    where: Where
    text: str
    stage: str = "unknown"
    mechanism: str = ""
    signals: list[str] = field(default_factory=list)
    component: str = ""


@frozen(kw_only=True)
class GroundInfo(Part):
    """`side` unknown: the log cannot tell; `settle` then says how to find out."""

    id: str
    side: Literal["for", "against", "unknown"]
    strength: str
    condition: str
    why: str = ""
    settle: str = ""
    where: list[Where] = field(default_factory=list)


@frozen(kw_only=True)
class FixInfo(Part):
    kind: Literal["flag", "env", "package", "host", "other"]
    op: str = ""
    name: str = ""
    value: str | None = None
    version: str = ""
    do: str = ""
    note: str = ""
    versions: str = ""
    safe: bool = True
    runnable: bool = False
    with_above: bool = False


Verdict = Literal["established", "likely", "possible", "ruled-out"]


@frozen(kw_only=True)
class HypothesisInfo(Part):
    id: str
    kind: Literal["finding", "difference", "engine"]
    finding: str | None = None
    title: str
    verdict: Verdict
    explains: list[str] = field(default_factory=list)
    grounds: list[GroundInfo] = field(default_factory=list)
    fix: list[FixInfo] = field(default_factory=list)
    why: str = ""
    category: str = ""
    status: str = ""
    look_alikes: list[str] = field(default_factory=list)
    verify: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


@frozen(kw_only=True)
class RiskInfo(Part):
    """A finding that may come true. `fix`: its steps for this launch, best first."""

    finding: str
    title: str = ""
    where: list[Where] = field(default_factory=list)
    fix: list[FixInfo] = field(default_factory=list)


@frozen(kw_only=True)
class NextStep(Part):
    """`kind`: experiment (a changed launch) or datum (something to collect). `command` can be copied."""

    kind: Literal["experiment", "datum"]
    do: str
    command: str = ""
    separates: list[str] = field(default_factory=list)
    settles: str = ""


@frozen(kw_only=True)
class DifferenceInfo(Part):
    """One difference to a control: `tested` says whether an attempt in the input varied it."""

    name: str
    here: Any = None
    control: Any = None
    tested: bool = False
    where: Where | None = None


@frozen(kw_only=True)
class ComparisonInfo(Part):
    deployment: str
    title: str = ""
    strength: str = ""
    why: str = ""
    differences: list[DifferenceInfo] = field(default_factory=list)


@frozen(kw_only=True)
class LineText(Part):
    """One raw line of an input as it is to be shown: masked and cut."""

    path: str
    line: int
    text: str


@frozen(kw_only=True)
class StageSpan(Part):
    """A stage of one rank. Times are seconds after `TimelineInfo.begin`; `end` is where the next stage begins."""

    stage: str
    begin: float
    end: float


@frozen(kw_only=True)
class LaneMark(Part):
    """A failure as one rank shows it: its first line there. `time` as in StageSpan (None unknown)."""

    failure: str
    role: str
    line: int
    time: float | None = None


@frozen(kw_only=True)
class LaneInfo(Part):
    """One rank over time. `rank` is "" for lines that carry none. `last` is its last line's time (None: no line).
    `silences` are gaps that are long against the launch's own rhythm."""

    rank: str
    stages: list[StageSpan] = field(default_factory=list)
    marks: list[LaneMark] = field(default_factory=list)
    silences: list[tuple[float, float]] = field(default_factory=list)
    last: float | None = None


@frozen(kw_only=True)
class TimelineInfo(Part):
    """`begin`: seconds since the epoch in the log's own clock (read as UTC). `end`, `failed` (the first failure) and
    `silences` (of the whole launch) are seconds after it."""

    begin: float
    end: float
    failed: float | None = None
    lanes: list[LaneInfo] = field(default_factory=list)
    silences: list[tuple[float, float]] = field(default_factory=list)


@frozen(kw_only=True)
class SeriesInfo(Part):
    """One batch metric of one rank ("": lines without one), thinned so that the extremes stay. `times` are seconds
    after `TimelineInfo.begin`; `points` counts the values before thinning. `kind`: decode or prefill."""

    kind: str
    metric: str
    rank: str = ""
    points: int = 0
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@frozen(kw_only=True)
class LaunchInfo(Part):
    """One launch. `series` are those of the focus launch only; `excerpts` are the lines around the places that its
    first failure and its grounds name, each line once."""

    id: str
    lines: tuple[int, int]
    path: str = ""
    reached: str
    ended: str
    ended_why: str = ""
    ended_where: Where | None = None
    ranks: RanksInfo
    version: VersionInfo
    facts: dict[str, FactValue] = field(default_factory=dict)
    progress: str = ""
    first_failure: FirstFailure | None = None
    failures: list[FailureInfo] = field(default_factory=list)
    hypotheses: list[HypothesisInfo] = field(default_factory=list)
    risks: list[RiskInfo] = field(default_factory=list)
    comparison: ComparisonInfo | None = None
    next: list[NextStep] = field(default_factory=list)
    nearest: list[str] = field(default_factory=list)
    unexplained: bool = False
    notes: list[str] = field(default_factory=list)
    timeline: TimelineInfo | None = None
    series: list[SeriesInfo] = field(default_factory=list)
    excerpts: list[LineText] = field(default_factory=list)


@frozen(kw_only=True)
class Change(Part):
    """One variable that differs from the launch before (or from the reference launch). `kind`: flag or env."""

    kind: Literal["flag", "env", "other"]
    name: str
    before: Any = None
    after: Any = None


@frozen(kw_only=True)
class AttemptInfo(Part):
    """One launch of the input as an experiment. `refutes`/`supports` hold finding ids with the reason."""

    launch: str
    path: str = ""
    lines: tuple[int, int] = (0, 0)
    against: str | None = None
    changed: list[Change] = field(default_factory=list)
    reached: str
    ended: str
    outcome: str
    same_failure_as: str | None = None
    refutes: dict[str, str] = field(default_factory=dict)
    supports: dict[str, str] = field(default_factory=dict)
    where: Where | None = None


@frozen(kw_only=True)
class ProblemInfo(Part):
    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    code: str = ""
    hint: str = ""


@frozen(kw_only=True)
class MetricShift(Part):
    """Medians of one batch metric over a launch's serving time."""

    name: str
    here: float | None = None
    baseline: float | None = None


@frozen(kw_only=True)
class BaselineInfo(Part):
    """The focus launch held against a good run that the caller named. `new_messages`: shapes of message that the good
    run does not have; `lost_messages` the other way round (stage marks and warnings only)."""

    path: str
    launch: str
    reached: str
    stages: dict[str, list[float | None]] = field(default_factory=dict)
    facts: list[DifferenceInfo] = field(default_factory=list)
    new_messages: list[Where] = field(default_factory=list)
    lost_messages: list[Where] = field(default_factory=list)
    metrics: list[MetricShift] = field(default_factory=list)


@frozen(kw_only=True)
class Report(Part):
    schema: str = "1"
    tool: Tool
    sources: list[SourceInfo] = field(default_factory=list)
    launches: list[LaunchInfo] = field(default_factory=list)
    headline: str = ""
    focus: str | None = None
    symptom: str | None = None
    attempts: list[AttemptInfo] = field(default_factory=list)
    baseline: BaselineInfo | None = None
    problems: list[ProblemInfo] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)

    def failed(self) -> bool:
        """Whether any launch shows a failure, or the user stated a symptom (exit code 1)."""
        return self.symptom is not None or any(x.first_failure is not None for x in self.launches)
