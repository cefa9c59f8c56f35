"""The JSON contract of `forensics analyze --format json`. Only ever added to; `forensics schema` prints it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from forensics.schema.span import Span


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Where(_Model):
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


class Tool(_Model):
    name: str = "forensics"
    version: str
    rules: int
    findings: int
    deployments: int = 0


class SourceInfo(_Model):
    """One input. `role` says what it is for. `kinds` counts lines by kind, `wrappers` names those found, `notes` say
    what was skipped or capped."""

    path: str
    bytes: int
    lines: int
    role: Literal["log", "baseline", "environment report", "history"] = "log"
    unparsed_lines: int = 0
    unattributed_lines: int = 0
    compression: str | None = None
    wrappers: list[str] = Field(default_factory=list)
    node: str | None = None
    clock_skew_s: float | None = None
    kinds: dict[str, int] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


class FactValue(_Model):
    value: Any = None
    where: Where | None = None
    how: str = "stated"


class RanksInfo(_Model):
    expected: list[str] = Field(default_factory=list)
    seen: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    stages: dict[str, str] = Field(default_factory=dict)


class VersionGround(_Model):
    reason: str
    where: Where | None = None


class VersionInfo(_Model):
    low: str | None = None
    high: str | None = None
    exact: str | None = None
    grounds: list[VersionGround] = Field(default_factory=list)


class FirstFailure(_Model):
    stage: str
    rank: str | None = None
    reporters: list[str] = Field(default_factory=list)
    suspect_ranks: list[str] = Field(default_factory=list)
    suspect_why: str = ""
    where: Where
    text: str
    failure: str | None = None
    component: str = ""
    context: list[Where] = Field(default_factory=list)


class FailureInfo(_Model):
    id: str
    role: Literal["root", "cascade", "teardown", "advice"]
    outcome: str
    count: int
    ranks: list[str] = Field(default_factory=list)
    where: Where
    text: str
    stage: str = "unknown"
    mechanism: str = ""
    signals: list[str] = Field(default_factory=list)
    component: str = ""


class GroundInfo(_Model):
    """`side` unknown: the log cannot tell; `settle` then says how to find out."""

    id: str
    side: Literal["for", "against", "unknown"]
    strength: str
    condition: str
    why: str = ""
    settle: str = ""
    where: list[Where] = Field(default_factory=list)


class FixInfo(_Model):
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


class HypothesisInfo(_Model):
    id: str
    kind: Literal["finding", "difference", "engine"]
    finding: str | None = None
    title: str
    verdict: Verdict
    explains: list[str] = Field(default_factory=list)
    grounds: list[GroundInfo] = Field(default_factory=list)
    fix: list[FixInfo] = Field(default_factory=list)
    why: str = ""
    category: str = ""
    status: str = ""
    look_alikes: list[str] = Field(default_factory=list)
    verify: list[str] = Field(default_factory=list)
    sources: list[str] = Field(default_factory=list)


class RiskInfo(_Model):
    finding: str
    title: str = ""
    where: list[Where] = Field(default_factory=list)


class NextStep(_Model):
    """`kind`: experiment (a changed launch) or datum (something to collect). `command` can be copied."""

    kind: Literal["experiment", "datum"]
    do: str
    command: str = ""
    separates: list[str] = Field(default_factory=list)
    settles: str = ""


class DifferenceInfo(_Model):
    """One difference to a control: `tested` says whether an attempt in the input varied it."""

    name: str
    here: Any = None
    control: Any = None
    tested: bool = False
    where: Where | None = None


class ComparisonInfo(_Model):
    deployment: str
    title: str = ""
    strength: str = ""
    why: str = ""
    differences: list[DifferenceInfo] = Field(default_factory=list)


class LineText(_Model):
    """One raw line of an input as it is to be shown: masked and cut."""

    path: str
    line: int
    text: str


class StageSpan(_Model):
    """A stage of one rank. Times are seconds after `TimelineInfo.begin`; `end` is where the next stage begins."""

    stage: str
    begin: float
    end: float


class LaneMark(_Model):
    """A failure as one rank shows it: its first line there. `time` as in StageSpan (None unknown)."""

    failure: str
    role: str
    line: int
    time: float | None = None


class LaneInfo(_Model):
    """One rank over time. `rank` is "" for lines that carry none. `last` is its last line's time (None: no line).
    `silences` are gaps that are long against the launch's own rhythm."""

    rank: str
    stages: list[StageSpan] = Field(default_factory=list)
    marks: list[LaneMark] = Field(default_factory=list)
    silences: list[tuple[float, float]] = Field(default_factory=list)
    last: float | None = None


class TimelineInfo(_Model):
    """`begin`: seconds since the epoch in the log's own clock (read as UTC). `end`, `failed` (the first failure) and
    `silences` (of the whole launch) are seconds after it."""

    begin: float
    end: float
    failed: float | None = None
    lanes: list[LaneInfo] = Field(default_factory=list)
    silences: list[tuple[float, float]] = Field(default_factory=list)


class SeriesInfo(_Model):
    """One batch metric of one rank ("": lines without one), thinned so that the extremes stay. `times` are seconds
    after `TimelineInfo.begin`; `points` counts the values before thinning. `kind`: decode or prefill."""

    kind: str
    metric: str
    rank: str = ""
    points: int = 0
    times: list[float] = Field(default_factory=list)
    values: list[float] = Field(default_factory=list)


class LaunchInfo(_Model):
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
    facts: dict[str, FactValue] = Field(default_factory=dict)
    progress: str = ""
    first_failure: FirstFailure | None = None
    failures: list[FailureInfo] = Field(default_factory=list)
    hypotheses: list[HypothesisInfo] = Field(default_factory=list)
    risks: list[RiskInfo] = Field(default_factory=list)
    comparison: ComparisonInfo | None = None
    next: list[NextStep] = Field(default_factory=list)
    nearest: list[str] = Field(default_factory=list)
    unexplained: bool = False
    notes: list[str] = Field(default_factory=list)
    timeline: TimelineInfo | None = None
    series: list[SeriesInfo] = Field(default_factory=list)
    excerpts: list[LineText] = Field(default_factory=list)


class Change(_Model):
    """One variable that differs from the launch before (or from the reference launch). `kind`: flag or env."""

    kind: Literal["flag", "env", "other"]
    name: str
    before: Any = None
    after: Any = None


class AttemptInfo(_Model):
    """One launch of the input as an experiment. `refutes`/`supports` hold finding ids with the reason."""

    launch: str
    path: str = ""
    lines: tuple[int, int] = (0, 0)
    against: str | None = None
    changed: list[Change] = Field(default_factory=list)
    reached: str
    ended: str
    outcome: str
    same_failure_as: str | None = None
    refutes: dict[str, str] = Field(default_factory=dict)
    supports: dict[str, str] = Field(default_factory=dict)
    where: Where | None = None


class ProblemInfo(_Model):
    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    code: str = ""
    hint: str = ""


class MetricShift(_Model):
    """Medians of one batch metric over a launch's serving time."""

    name: str
    here: float | None = None
    baseline: float | None = None


class BaselineInfo(_Model):
    """The focus launch held against a good run that the caller named. `new_messages`: shapes of message that the good
    run does not have; `lost_messages` the other way round (stage marks and warnings only)."""

    path: str
    launch: str
    reached: str
    stages: dict[str, list[float | None]] = Field(default_factory=dict)
    facts: list[DifferenceInfo] = Field(default_factory=list)
    new_messages: list[Where] = Field(default_factory=list)
    lost_messages: list[Where] = Field(default_factory=list)
    metrics: list[MetricShift] = Field(default_factory=list)


class Report(_Model):
    schema_: str = Field(default="1", alias="schema")
    tool: Tool
    sources: list[SourceInfo] = Field(default_factory=list)
    launches: list[LaunchInfo] = Field(default_factory=list)
    headline: str = ""
    focus: str | None = None
    symptom: str | None = None
    attempts: list[AttemptInfo] = Field(default_factory=list)
    baseline: BaselineInfo | None = None
    problems: list[ProblemInfo] = Field(default_factory=list)
    omitted: list[str] = Field(default_factory=list)

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def failed(self) -> bool:
        """Whether any launch shows a failure, or the user stated a symptom (exit code 1)."""
        return self.symptom is not None or any(x.first_failure is not None for x in self.launches)
