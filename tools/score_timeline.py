"""Scores launches and first failures against the truth of the samples; lists every miss."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from forensics.engine.scan import scan
from forensics.grammar.blocks import find_blocks
from forensics.schema.launch import Launch
from forensics.schema.options import Options
from forensics.timeline.failures import find_failures
from forensics.timeline.launches import find_launches

SAMPLES = Path(__file__).parent.parent / "samples"


@dataclass
class Score:
    """Right and asked-for answers by field, and the misses in words."""

    right: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    misses: list[str] = field(default_factory=list)

    def add(self, name: str, case: str, got: object, wanted: object, good: bool | None = None) -> None:
        good = got == wanted if good is None else good
        self.asked[name] = self.asked.get(name, 0) + 1
        self.right[name] = self.right.get(name, 0) + int(good)
        if not good:
            self.misses.append(f"{name:9} {case}: {got!r}, wanted {wanted!r}")

    def share(self, name: str) -> float:
        return self.right.get(name, 0) / max(1, self.asked.get(name, 0))


def truths() -> list[tuple[str, Path, dict]]:
    found = []
    for path in sorted(SAMPLES.rglob("*truth.json")):
        name = path.name.removesuffix("truth.json").rstrip(".")
        log = path.with_name(f"{name}.log" if name else "log.txt")
        if log.exists():
            case = path.parent.name + (f"/{name}" if name else "")
            found.append((case, log, json.loads(path.read_text())))
    return found


def launches_of(log: Path) -> tuple[object, tuple[Launch, ...]]:
    table = scan([log])
    blocks = find_blocks(table)
    return table, tuple(find_failures(table, blocks, x, {}, {}) for x in find_launches(table, blocks, Options()))


def judge(score: Score, case: str, log: Path, truth: dict) -> None:
    table, launches = launches_of(log)
    if "launches" in truth:
        score.add("launches", case, len(launches), truth["launches"])
    if not launches:
        return
    told = (truth.get("first_failure") or {}).get("line")
    launch = next((x for x in launches if told is not None and x.lines[0] <= told <= x.lines[1]), launches[0])
    first = launch.failure(launch.first_failure)
    wanted = truth.get("first_failure")
    line = int(table.line[first.row]) if first else None
    text = f"{line}: {first.text[:90]}" if first else None
    if wanted is None:
        score.add("none", case, text, None)
    else:
        score.add("line", case, text, wanted["line"], line is not None and abs(line - wanted["line"]) <= 2)
        if first is not None and line is not None and abs(line - wanted["line"]) <= 2:
            score.add("rank", case, str(first.rank) if first.rank else None, wanted.get("rank"))
            if truth.get("stage"):
                good = [truth["stage"], *truth.get("stage_also", [])]
                score.add("stage", case, first.stage, good, first.stage in good)
        for name in wanted.get("reporters") or []:
            score.add(
                "reporter",
                case,
                [str(r) for r in first.reporters][:1] if first else [],
                name,
                bool(first) and name in [str(r) for r in first.reporters],
            )
    if truth.get("guilty_rank"):
        names = [str(r) for r in first.suspect_ranks] if first else []
        score.add("suspect", case, names, truth["guilty_rank"], truth["guilty_rank"] in names)
    for name in ("reached", "ended"):
        if truth.get(name) and truth["launches"]:
            score.add(name, case, getattr(launch, name), truth[name])


def run() -> Score:
    score = Score()
    for case, log, truth in truths():
        judge(score, case, log, truth)
    return score


if __name__ == "__main__":
    result = run()
    for miss in sorted(result.misses):
        print(miss)
    for name in sorted(result.asked):
        print(f"{name:9} {result.right[name]}/{result.asked[name]} {result.share(name):.1%}")
    sys.exit(0)
