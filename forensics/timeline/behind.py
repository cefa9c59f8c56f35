"""Who has not come as far as the others in a start-up that stands still."""

from __future__ import annotations

from forensics.schema.launch import Launch, StageMark
from forensics.schema.rank import Rank
from forensics.timeline.stages import ORDER

_EDGES = {"begin": 0, "end": 1}
_LAST = ORDER["graph-capture"]
"""Later marks are printed by the first rank or by the parent alone."""
_WORDS = {
    ("init", "end"): "the others finished the set-up of their process groups (`Init torch distributed ends`)",
    ("load", "begin"): "the others began to load weights",
    ("load", "end"): "the others loaded their weights (`Load weight end`)",
    ("kv-pool", "begin"): "the others allocated their KV cache",
    ("kv-pool", "end"): "the others have their memory pools (`Memory pool end`)",
    ("graph-capture", "begin"): "the others began to capture graphs",
    ("graph-capture", "end"): "the others captured their graphs",
}
_PASSED = {(ORDER[stage], _EDGES[edge]): text for (stage, edge), text in _WORDS.items()}


def behind(launch: Launch) -> tuple[tuple[Rank, ...], str]:
    """The ranks that miss a mark of start-up which at least half of the ranks in the input passed, and what the others
    passed; nobody where all came equally far or the server was up. Ranks without any line are told elsewhere."""
    places = _furthest(launch.marks)
    seen = [r for r in launch.seen if r in places or r.axes]
    if launch.reached in ("warmup", "serving") or launch.truncated_head or len(seen) < 2:
        return (), ""
    passed = sorted((places.get(r, (0, 0)) for r in seen), reverse=True)
    common = passed[(len(seen) - 1) // 2]
    late = tuple(r for r in seen if places.get(r, (0, 0)) < common)
    words = _PASSED.get(common)
    return (late, words) if late and words else ((), "")


def _furthest(marks: tuple[StageMark, ...]) -> dict[Rank, tuple[int, int]]:
    found: dict[Rank, tuple[int, int]] = {}
    for mark in marks:
        if mark.rank is not None and ORDER[mark.stage] <= _LAST:
            found[mark.rank] = max(found.get(mark.rank, (0, 0)), (ORDER[mark.stage], _EDGES.get(mark.edge, 0)))
    return found
