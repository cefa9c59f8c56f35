"""Findings and deployments: the knowledge base's own data."""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.late import Late
from forensics.schema.facts import Value
from forensics.schema.span import Span

HOLE = Late(r"\{(?P<name>[A-Za-z_][\w-]*\.[A-Za-z_][\w.]*)(?:\|(?P<else>[^{}|]*))?\}")
"""`{rule.capture}` or `{args.port}` in a step; `{args.port|PORT}` says what stands there when the log does not tell."""


@frozen
class FixStep:
    """One typed change. `kind`: flag, env, package, host, other. `op`: set, remove (flag, env); at-least, exact,
    below (package). `do` is the sentence of host and other steps. `versions` is a range text (`>=0.5.7,<0.5.10`; ""
    is any). `runnable`: replay can apply it. `safe`: it cannot lose data or change answers beyond the cause.
    `with_above`: it helps only together with the step above it; the two are one change. `when`: a condition; the step
    is meant for launches where it holds. `literal`: the name is the launch's own spelling, not to be translated. Name,
    value, version and sentence may hold `{rule.capture}` or `{args.field}`: what the log names. `respell` (flags): the
    flag as this release calls it, out where it has none."""

    kind: str
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
    when: Condition | None = None
    literal: bool = False


@frozen
class Condition:
    """A condition as written, with its place. `strength`: must, decisive, strong, weak, against, excludes."""

    text: str
    strength: str
    span: Span


@frozen
class LogBlock:
    """A fenced `log` block of a finding's body. `expect`: match or near-miss. `named_line` is the 1-based line inside
    the block that must be named as the cause's ground (None: any). `span` is the first line
    inside the fence. `symptom` is stated to the analyzer; `sample` names a case under samples/cases that stands for an
    empty text."""

    expect: str
    text: str
    span: Span
    named_line: int | None = None
    symptom: str | None = None
    sample: str = ""


@frozen
class Shows:
    """`signal` would have appeared by the time that `stage` was passed: the ground for ruling the cause out."""

    signal: str
    stage: str


@frozen
class Finding:
    """One Markdown file of kb/findings. See docs/findings.md for each key."""

    id: str
    title: str
    category: str
    status: str
    span: Span
    versions: str = ""
    applies: tuple[Condition, ...] = ()
    grounds: tuple[Condition, ...] = ()
    explains: tuple[str, ...] = ()
    shows: tuple[Shows, ...] = ()
    look_alikes: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    fix: tuple[FixStep, ...] = ()
    verify: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    log_evidence: str = "none"
    body: str = ""
    logs: tuple[LogBlock, ...] = ()
    override: bool = False


@frozen
class Deployment:
    """A launch known to work: the control of a comparison. `strength`: accuracy, throughput, served, benchmarked,
    recommended. `args` are server_args fields (dest names) that the source states; `facts` further dotted facts."""

    id: str
    title: str
    strength: str
    span: Span
    gpu: str = ""
    gpu_count: int | None = None
    sm: int | None = None
    nodes: int = 1
    quantization: str = ""
    model: str = ""
    architecture: str = ""
    features: tuple[str, ...] = ()
    versions: str = ""
    args: tuple[tuple[str, Value], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, Value], ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    body: str = ""
