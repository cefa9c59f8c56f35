"""The report for people at a terminal: calm, readable at 80 columns, plain when piped."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from forensics.output.clean import clean
from forensics.output.fixes import fix_lines
from forensics.schema.launch import STAGES
from forensics.schema.report import (
    AttemptInfo,
    ComparisonInfo,
    FirstFailure,
    GroundInfo,
    HypothesisInfo,
    LaunchInfo,
    Report,
    SourceInfo,
    Where,
)

VERDICT_STYLE = {"established": "bold green", "likely": "bold yellow", "possible": "yellow", "ruled-out": "dim"}
SIDE_MARK = {"for": ("+", "green"), "against": ("-", "red"), "unknown": ("?", "cyan")}
_GROUNDS_SHOWN = 6


def render(report: Report, *, width: int = 80, color: bool = False, detail: int = 0, brief: bool = False) -> str:
    """The report as text of at most `width` columns (longer paths and commands are not cut: they are to be copied).

    `detail` 0 shows the main grounds, 1 (`-v`) all of them with facts and every launch's failures. `brief` is one
    screen for a pager.
    """
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="standard" if color else None,
        highlight=False, emoji=False, markup=False, soft_wrap=False, legacy_windows=False,
    )  # fmt: skip
    page = Page(console, report, detail, brief)
    page.draw()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def quiet(report: Report) -> str:
    """One line: the headline."""
    return clean(report.headline) + "\n"


class Page:
    """Draws the sections in the order in which a reader needs them."""

    def __init__(self, console: Console, report: Report, detail: int, brief: bool) -> None:
        self.console = console
        self.report = report
        self.detail = detail
        self.brief = brief

    def draw(self) -> None:
        report = self.report
        self.line(Text(clean(report.headline), style="bold"))
        self.line(Text(_sources(report.sources), style="dim"))
        focus = next((x for x in report.launches if x.id == report.focus), None)
        if report.launches and not self.brief:
            self.strip(focus)
        if focus:
            self.first_failure(focus)
            self.causes(focus)
            self.ruled_out(focus)
            self.fix(focus)
            if not self.brief:
                self.attempts()
                self.comparison(focus.comparison)
                self.risks(focus)
            self.next(focus)
            if self.detail:
                self.facts(focus)
            self.notes(focus)
        self.problems()

    # -- sections ------------------------------------------------------------------------------------------------

    def strip(self, focus: LaunchInfo | None) -> None:
        self.head("Launches" if len(self.report.launches) > 1 else "Launch")
        for launch in self.report.launches:
            text = Text("▸ " if launch is focus else "  ")
            text.append(f"{launch.id:<4}", style="bold" if launch is focus else "")
            text.append(f"{launch.lines[0]}–{launch.lines[1]}  ".ljust(14), style="dim")
            text.append(stage_strip(launch))
            self.line(text)
            detail = _ranks(launch)
            if detail:
                self.line(Text(detail, style="dim"), indent=6)

    def first_failure(self, launch: LaunchInfo) -> None:
        first = launch.first_failure
        if first is None:
            return
        self.head("First failure")
        who = f"rank {first.rank}" if first.rank else "no rank on the line"
        if first.reporters and first.reporters != [first.rank]:
            who += f", reported by {', '.join(first.reporters[:8])}"
        self.line(Text.assemble((_where(first.where), "bold"), f"  {first.stage}, {who}"), indent=2)
        for row in _context(first):
            self.line(row, indent=4)
        if first.suspect_ranks:
            why = f" ({clean(first.suspect_why)})" if first.suspect_why else ""
            self.line(Text(f"suspect: {', '.join(first.suspect_ranks)}{why}"), indent=2)
        followers = [f for f in launch.failures if f.role in ("cascade", "teardown") and f.count]
        if followers and not self.brief:
            self.line(Text(f"{sum(f.count for f in followers)} later lines are consequences of it", "dim"), indent=2)

    def causes(self, launch: LaunchInfo) -> None:
        live = [h for h in launch.hypotheses if h.verdict != "ruled-out"]
        if not live:
            if launch.first_failure or self.report.symptom:
                self.head("Causes")
                self.line(Text("none of the known causes fits; see what to collect below"), indent=2)
            return
        self.head("Causes")
        shown = live[:3] if self.brief else live[: 5 + 20 * self.detail]
        for number, hypothesis in enumerate(shown, 1):
            self.hypothesis(number, hypothesis)
        if len(live) > len(shown):
            self.line(Text(f"{len(live) - len(shown)} more with -v", style="dim"), indent=2)

    def hypothesis(self, number: int, hypothesis: HypothesisInfo) -> None:
        title = Text(f"{number}. ")
        title.append(hypothesis.verdict, style=VERDICT_STYLE[hypothesis.verdict])
        title.append(f"  {clean(hypothesis.title)}")
        if hypothesis.finding:
            title.append(f"  [{hypothesis.finding}]", style="dim")
        self.line(title, indent=2, hang=3)
        if hypothesis.why:
            self.line(Text(clean(hypothesis.why)), indent=5)
        if self.brief and number > 1:
            return
        for ground in _main_grounds(hypothesis.grounds, self.detail):
            self.ground(ground)

    def ground(self, ground: GroundInfo) -> None:
        mark, style = SIDE_MARK[ground.side]
        text = Text(f"{mark} ", style=style)
        text.append(clean(ground.why or ground.condition), style="" if ground.side == "for" else style)
        if ground.where:
            text.append(f"  {_where(ground.where[0])}", style="dim")
            if len(ground.where) > 1:
                text.append(f" and {len(ground.where) - 1} more", style="dim")
        self.line(text, indent=5, hang=2)
        if ground.side == "unknown" and ground.settle and self.detail:
            self.line(Text(f"to settle: {clean(ground.settle)}", style="dim"), indent=9)

    def ruled_out(self, launch: LaunchInfo) -> None:
        gone = [h for h in launch.hypotheses if h.verdict == "ruled-out"]
        if not gone or self.brief:
            return
        self.head("Ruled out")
        for hypothesis in gone[: 8 + 40 * self.detail]:
            text = Text(f"× {clean(hypothesis.title)}", style="dim")
            reason = hypothesis.why or next(
                (g.why or g.condition for g in hypothesis.grounds if g.side == "against"), ""
            )
            text.append(f": {clean(reason)}")
            place = next((g.where[0] for g in hypothesis.grounds if g.side == "against" and g.where), None)
            if place:
                text.append(f"  {_where(place)}", style="dim")
            self.line(text, indent=2, hang=2)

    def fix(self, launch: LaunchInfo) -> None:
        best = next((h for h in launch.hypotheses if h.verdict != "ruled-out" and h.fix), None)
        if best is None:
            return
        self.head(f"Fix for {best.finding or best.id}")
        for line, note in fix_lines(best.fix):
            self.line(
                Text(line, style="green" if line.startswith("+") else ("red" if line.startswith("-") else "")),
                indent=2,
                hang=2,
            )
            if note and not self.brief:
                self.line(Text(clean(note), style="dim"), indent=4)

    def attempts(self) -> None:
        tried = [a for a in self.report.attempts if a.changed]
        if len(self.report.attempts) < 2 or not tried:
            return
        self.head("Tried")
        for attempt in self.report.attempts:
            self.attempt(attempt)

    def attempt(self, attempt: AttemptInfo) -> None:
        change = "; ".join(_change(c.kind, c.name, c.after) for c in attempt.changed) or "as it was"
        text = Text(f"{attempt.launch:<4}")
        text.append(clean(change), style="bold")
        text.append(f" → {clean(attempt.outcome)}")
        self.line(text, indent=2, hang=4)
        for finding, why in sorted(attempt.refutes.items()):
            self.line(Text(f"speaks against {finding}: {clean(why)}", style="dim"), indent=6, hang=2)

    def comparison(self, comparison: ComparisonInfo | None) -> None:
        if comparison is None or not comparison.differences:
            return
        self.head("Against the nearest launch known to work")
        self.line(Text(clean(f"{comparison.title or comparison.deployment} ({comparison.strength})")), indent=2)
        shown = comparison.differences[: 10 + 60 * self.detail]
        for difference in shown:
            mark = "tried " if difference.tested else "untested "
            text = Text(mark, style="dim" if difference.tested else "yellow")
            text.append(f"{difference.name}: {_value(difference.here)} here, {_value(difference.control)} there")
            self.line(text, indent=4, hang=2)
        if len(comparison.differences) > len(shown):
            self.line(Text(f"{len(comparison.differences) - len(shown)} more with -v", style="dim"), indent=4)

    def risks(self, launch: LaunchInfo) -> None:
        if not launch.risks:
            return
        self.head("Risks" if launch.first_failure is None else "Other warnings that are known to matter")
        for risk in launch.risks[: 5 + 40 * self.detail]:
            place = f"  {_where(risk.where[0])}" if risk.where else ""
            self.line(Text(f"! {clean(risk.title or risk.finding)}{place}"), indent=2, hang=2)

    def next(self, launch: LaunchInfo) -> None:
        if not launch.next:
            return
        self.head("Next")
        for number, step in enumerate(launch.next[: 2 if self.brief else 6], 1):
            self.line(Text(f"{number}. {clean(step.do)}"), indent=2, hang=3)
            if step.command:
                self.copyable(clean(step.command), indent=5)

    def facts(self, launch: LaunchInfo) -> None:
        self.head("Facts")
        for name, fact in sorted(launch.facts.items()):
            place = f"  {_where(fact.where)}" if fact.where else ""
            self.line(Text(f"{name} = {_value(fact.value)}{place}"), indent=2, hang=4)

    def notes(self, launch: LaunchInfo) -> None:
        notes = [*launch.notes, *(n for s in self.report.sources for n in s.notes), *self.report.omitted]
        unread = [
            f"{s.path}: {s.unparsed_lines} of {s.lines} lines are of no known kind"
            for s in self.report.sources
            if s.unparsed_lines
        ]
        shown = [*notes, *(unread if self.detail else [])]
        if shown and not self.brief:
            self.head("What is not known")
            for note in dict.fromkeys(shown):
                self.line(Text(f"· {clean(note)}", style="dim"), indent=2, hang=2)

    def problems(self) -> None:
        if self.report.problems:
            self.head("Problems")
            for problem in self.report.problems:
                place = (
                    f"{problem.path}:{problem.line}: "
                    if problem.path and problem.line
                    else f"{problem.path}: "
                    if problem.path
                    else ""
                )
                hint = f" ({problem.hint})" if problem.hint else ""
                self.line(Text(clean(f"{place}{problem.message}{hint}"), style="red"), indent=2, hang=2)

    # -- drawing -------------------------------------------------------------------------------------------------

    def head(self, title: str) -> None:
        if not self.brief:
            self.console.print()
        self.console.print(Text(title, style="bold underline"))

    def line(self, text: Text, indent: int = 0, hang: int = 0) -> None:
        """Print wrapped text; `hang` further columns of indent for the lines after the first."""
        width = max(20, self.console.width - indent - hang)
        rows = text.wrap(self.console, width, overflow="fold", no_wrap=False)
        for number, row in enumerate(rows):
            self.console.print(Padding(row, (0, 0, 0, indent + (hang if number else 0))), overflow="fold")

    def copyable(self, command: str, indent: int) -> None:
        """A command on one physical line however long, so that it can be copied."""
        self.console.file.write(" " * indent + command + "\n")


def stage_strip(launch: LaunchInfo) -> Text:
    """`config ▸ init ▸ load ✗ crashed`: the stages that were passed and where the launch ended."""
    text = Text()
    order = list(STAGES)
    last = order.index(launch.reached) if launch.reached in order else -1
    text.append(" ▸ ".join(order[: last + 1]) or launch.reached or "nothing known")
    style = {"crashed": "bold red", "killed": "bold red", "hung": "bold red", "stopped": "green", "running": "green"}
    mark = {"crashed": "✗", "killed": "✗", "hung": "…", "stopped": "■", "running": "▸"}.get(launch.ended, "·")
    where = launch.first_failure.stage if launch.first_failure else ""
    ended = launch.ended.replace("log-ends", "log ends here")
    place = (
        f" in {where}" if where and launch.ended in ("crashed", "hung", "killed") and where != launch.reached else ""
    )
    text.append(f" {mark} {ended}{place}", style=style.get(launch.ended, "dim"))
    if launch.progress:
        text.append(f" ({clean(launch.progress)})", style="dim")
    return text


def _ranks(launch: LaunchInfo) -> str:
    ranks = launch.ranks
    if not ranks.missing:
        return ""
    return f"{', '.join(ranks.missing[:16])} never reported ({len(ranks.seen)} of {len(ranks.expected)} ranks seen)"


def _sources(sources: list[SourceInfo]) -> str:
    parts = [f"{clean(s.path)}, {s.lines:,} lines" for s in sources[:4]]
    if len(sources) > 4:
        parts.append(f"{len(sources) - 4} more")
    return "; ".join(parts)


def _where(where: Where) -> str:
    return f"{clean(where.path)}:{where.line}:{where.column}"


def _context(first: FirstFailure) -> Iterable[Text]:
    rows = first.context or [first.where.model_copy(update={"text": first.text})]
    width = max(len(str(row.line)) for row in rows)
    for row in rows:
        here = row.line == first.where.line and row.path == first.where.path
        text = Text(f"{'▸' if here else ' '} {row.line:>{width}} │ ", style="bold" if here else "dim")
        text.append(clean(row.text or "", 240 if here else 120), style="" if here else "dim")
        yield text


def _main_grounds(grounds: list[GroundInfo], detail: int) -> list[GroundInfo]:
    if detail:
        return grounds
    order = {"decisive": 0, "must": 1, "strong": 2, "against": 2, "excludes": 2, "weak": 3}
    ranked = sorted(grounds, key=lambda g: (g.side == "unknown", order.get(g.strength, 4)))
    chosen = ranked[:_GROUNDS_SHOWN]
    return [g for g in grounds if g in chosen]


def _change(kind: str, name: str, after: object) -> str:
    if after is None:
        return f"without {name}"
    if after is True:
        return name
    return f"{name}={_value(after)}" if kind == "env" else f"{name} {_value(after)}"


def _value(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "on" if value else "off"
    return clean(str(value), 80)
