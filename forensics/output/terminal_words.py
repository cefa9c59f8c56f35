"""Words and small drawings of the terminal report: stage strips, ranges of ranks, places named once in full."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.text import Text

from forensics.output.clean import clean
from forensics.output.command_diff import CommandDiff
from forensics.schema.launch import STAGES
from forensics.schema.report import FirstFailure, GroundInfo, LaunchInfo, SourceInfo, Where

WIDE = 116
"""Columns from which a launch strip names every stage."""
_END_MARK = {"crashed": "✗", "killed": "✗", "hung": "…", "stopped": "■", "running": "▸"}
_END_STYLE = {"crashed": "bold red", "killed": "bold red", "hung": "bold red", "stopped": "green", "running": "green"}
_OFTEN = re.compile(r" \((?:once|\d[\d,]* times)\)$")
_RANK = re.compile(r"^(.*?)(\d+)$")


class Places:
    """Names each place in full once, so that it can be opened; later it is only `line N`."""

    def __init__(self, sources: list[SourceInfo]) -> None:
        self.single = len(sources) == 1
        self.named: set[tuple[str, int, int]] = set()

    def __call__(self, where: Where) -> str:
        key = (where.path, where.line, where.column)
        if self.single and key in self.named:
            return f"line {where.line}"
        self.named.add(key)
        return full_place(where)


def full_place(where: Where) -> str:
    """`path:line:column`."""
    return f"{file_name(where.path)}:{where.line}:{where.column}"


def file_name(path: str) -> str:
    """An input's name for a reader; `-` is the standard input."""
    return "stdin" if path == "-" else clean(path)


def near_place(where: Where, launch: LaunchInfo) -> str:
    """`line:column` in the launch's own file, the whole place elsewhere."""
    return f"{where.line}:{where.column}" if where.path == launch.path else full_place(where)


def stage_strip(launch: LaunchInfo, width: int) -> tuple[Text, Text]:
    """The stages that were passed, the one where it broke in red: their names where there is room, else a bar of as
    many cells as there are stages. And how the launch ended, apart, so that endings can stand below each other."""
    order = list(STAGES)
    last = order.index(launch.reached) if launch.reached in order else -1
    reached = launch.reached or "nothing known"
    style = _END_STYLE.get(launch.ended, "dim")
    broke = style if style.endswith("red") else ""
    text = Text()
    if width >= WIDE:
        passed = " ▸ ".join(order[:last])
        text.append(f"{passed} ▸ " if passed else "")
        text.append(reached, style=broke)
    else:
        text.append("■" * max(last, 0), style="green")
        text.append("■" * (last >= 0), style=broke or "green")
        text.append("□" * (len(order) - last - 1), style="dim")
        text.append(f" {reached}")
    stage, _, share = launch.progress.partition(" ")
    if stage == launch.reached and share and share != "100 %":
        text.append(f" {clean(share)}", style=broke if width >= WIDE else "")
    return text, Text(f"{_END_MARK.get(launch.ended, '·')} {ending(launch)}", style=style)


def command_rows(diff: CommandDiff, color: bool) -> tuple[Text, Text]:
    """The command as it was and as it is to be. In colour the changed words stand out and the new one bears no sign, so
    that it can be copied whole; in plain text `-` and `+` tell the two apart."""
    if not color:
        return Text(f"- {diff.before}"), Text(f"+ {diff.after}")
    old, new = Text("- ", style="dim"), Text("  ")
    for sign, piece in diff.pieces:
        lead = piece[: len(piece) - len(piece.lstrip())]
        if sign != "+":
            old.append(lead).append(piece[len(lead) :], style="not dim red strike" if sign == "-" else "")
        if sign != "-":
            new.append(lead).append(piece[len(lead) :], style="bold green" if sign == "+" else "")
    return old, new


def ending(launch: LaunchInfo) -> str:
    """`crashed in decode`, `log ends here`."""
    where = launch.first_failure.stage if launch.first_failure else ""
    ended = launch.ended.replace("log-ends", "log ends here")
    if where and launch.ended in ("crashed", "hung", "killed") and where != launch.reached:
        return f"{ended} in {where}"
    return ended


def missing_ranks(launch: LaunchInfo) -> str:
    """Which of the expected ranks have no line."""
    ranks = launch.ranks
    if not ranks.missing:
        return ""
    return f"{rank_ranges(ranks.missing)} never reported ({len(ranks.seen)} of {len(ranks.expected)} ranks seen)"


def rank_ranges(ranks: list[str], most: int = 8) -> str:
    """`TP0–TP3, TP6` in place of every name."""
    runs: list[list[str]] = []
    for rank in ranks:
        if runs and _follows(runs[-1][-1], rank):
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else run
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return clean(", ".join(parts[:most]) + more)


def _follows(before: str, rank: str) -> bool:
    left, right = _RANK.match(before), _RANK.match(rank)
    if not left or not right or len(left[2]) > 9 or len(right[2]) > 9:
        return False
    return left[1] == right[1] and int(right[2]) == int(left[2]) + 1


def reporters(first: FirstFailure) -> str:
    """On whom the first failure shows, and who else reported it."""
    who = f"rank {clean(first.rank)}" if first.rank else "no rank on the line"
    others = [rank for rank in first.reporters if rank != first.rank]
    if not others:
        return who
    order = sorted(others, key=lambda r: (len(r), r))
    named = rank_ranges(order)
    first_one = f" ({clean(others[0])} first)" if len(others) > 1 else ""
    return f"{who}, {'then ' if first.rank else ''}reported by {named}{first_one if not first.rank else ''}"


def context_rows(first: FirstFailure, width: int, lines: int | None = None) -> Iterable[Text]:
    """The line that states the failure (wrapped, never cut to nothing) among its neighbours (one row each)."""
    rows = first.context or [first.where.model_copy(update={"text": first.text})]
    if lines == 0:
        rows = [row for row in rows if _is(row, first.where)] or rows[:1]
    digits = max(len(str(row.line)) for row in rows)
    room = max(20, width - digits - 5)
    before = rows[0].line - 1
    for row in rows:
        if row.line > before + 1:
            yield Text(f"  {'⋮':>{digits}}", style="dim")
        before = row.line
        here = _is(row, first.where)
        text = Text(f"{'▸' if here else ' '} {row.line:>{digits}} │ ", style="bold red" if here else "dim")
        content = clean(row.text or "")
        limit = room * 3 if here and lines != 0 else room * (2 if here else 1)
        text.append(cut(content, limit), style="bold" if here else "dim")
        yield text


def _is(row: Where, place: Where) -> bool:
    return (row.path, row.line) == (place.path, place.line)


def cut(text: str, room: int) -> str:
    """At most `room` characters, the last one `…` where something is missing."""
    return text if len(text) <= room else text[: max(1, room - 1)] + "…"


def sources_line(sources: list[SourceInfo]) -> str:
    """Inputs with their length, or what they are beside the logs."""
    parts = [f"{file_name(s.path)}, {f'{s.lines:,} lines' if s.role == 'log' else s.role}" for s in sources[:4]]
    if len(sources) > 4:
        parts.append(f"{len(sources) - 4} more")
    return "; ".join(parts)


def main_grounds(grounds: list[GroundInfo], room: int) -> list[GroundInfo]:
    """The weightiest grounds, in their own order; what an earlier one said already is left out."""
    order = {"decisive": 0, "must": 1, "strong": 2, "against": 2, "excludes": 2, "weak": 3}
    ranked = sorted(grounds, key=lambda g: (g.side == "unknown", order.get(g.strength, 4)))
    chosen: set[int] = set()
    told: set[tuple[str, str]] = set()
    for ground in ranked:
        parts = {(ground.side, part) for part in said(ground)}
        if len(chosen) < room and not parts <= told:
            chosen.add(id(ground))
            told |= parts
    return [g for g in grounds if id(g) in chosen]


def said(ground: GroundInfo) -> list[str]:
    """What a ground says, part by part, without how often and that it is the first failure."""
    text = (ground.why or ground.condition).removeprefix("the first failure says it: ")
    return [_OFTEN.sub("", part) for part in text.split("; ")]


def left_out(grounds: list[GroundInfo], shown: list[GroundInfo]) -> str:
    """`2 more grounds for and 1 against` it."""
    kept = {id(g) for g in shown}
    rest = [g for g in grounds if id(g) not in kept]
    names = {"for": "for", "against": "against", "unknown": "not known"}
    counts = [(sum(g.side == side for g in rest), names[side]) for side in names]
    parts = [f"{count} {name}" for count, name in counts if count]
    first, _, more = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts).partition(" ")
    return f"{first} more ground{'s' if first != '1' else ''} {more}"
