"""Multi-line blocks that belong to one process: tracebacks, device asserts, watchdog reports, dumps."""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.schema.rank import Rank


@frozen
class Frame:
    """One stack frame. `file`, `function` as printed; `number` is the source line (0 unknown); `row` its table row."""

    row: int
    file: str
    number: int
    function: str


@frozen
class Raised:
    """One exception of a chain. `row` is the table row of the line `type: message`; `link` says how it follows the
    one before: `""` (first), `cause` (direct cause), `context` (during handling)."""

    row: int
    type: str
    message: str
    frames: tuple[Frame, ...]
    link: str = ""


@frozen
class Block:
    """`kind`: traceback, cuda-assert, pg-watchdog, faulthandler, cxx-terminate, py-spy, capture-advice, argparse,
    triton-compile, nccl. `rows` are all its table rows in file order (not contiguous where ranks interleave).
    `rank` is from its own header, else from evidence (`rank_by` then says which), else None.
    `raised` is oldest (innermost cause) first: for tracebacks `raised[0]` is the original exception.
    `truncated`: the block's end (or its head) is missing. `count` folds repeats (an assert flood is one block; of a
    long flood only the first rows are kept in `rows`). `frames` holds the frames of all parts, each part's innermost
    frame last, whatever order the program printed. `global_rank` is the number N of a `[rankN]:` prefix: a rank of
    torch's world, not a TP rank. A `native-stack` is a native stack of no other block."""

    kind: str
    rows: tuple[int, ...]
    rank: Rank | None = None
    rank_by: str = "header"
    raised: tuple[Raised, ...] = ()
    frames: tuple[Frame, ...] = ()
    truncated: bool = False
    count: int = 1
    global_rank: int | None = None

    @property
    def head(self) -> int:
        """Table row of the first line of the block."""
        return self.rows[0]
