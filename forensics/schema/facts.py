"""Facts: typed values that the log states about a launch, each with its place."""

from __future__ import annotations

from typing import TypeAlias

from forensics.frozen import frozen
from forensics.schema.span import Span

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"


@frozen
class Fact:
    """`name` is dotted (`args.quantization`, `env.NCCL_DEBUG`, `gpu.sm`, `version.torch`, `weights.dtype`).

    `where` is None only for facts that the caller stated (command line). `how` says in a few words how it is known:
    `stated` by the log, or `inferred` from something, then with the reason.
    """

    name: str
    value: Value
    where: Span | None
    how: str = "stated"


@frozen
class VersionInterval:
    """The sglang release lies in `[low, high]`, both ends included and in the program's own spelling; None is open.

    `grounds` holds (reason, span) pairs, in the order in which they narrowed it. `exact` is the version that the log
    states, when it does. Dev builds (`0.5.8.post2.dev418+g…`) set `low` and leave `high` open.
    """

    low: str | None = None
    high: str | None = None
    exact: str | None = None
    grounds: tuple[tuple[str, Span | None], ...] = ()
