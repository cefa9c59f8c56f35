"""The report for people at a terminal: calm, readable at 80 columns, plain when piped."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from forensics.frozen import frozen
from forensics.output import terminal_tables as tables
from forensics.output import terminal_words as words
from forensics.output.clean import clean
from forensics.output.command_diff import command_diff, same_command
from forensics.output.fixes import as_alternative, fix_lines
from forensics.output.view import (
    change_text,
    focus_of,
    ground_text,
    live,
    outcome_text,
    ruled_out,
    says_nothing,
    value_text,
)
from forensics.schema.report import (
    AttemptInfo,
    GroundInfo,
    HypothesisInfo,
    LaunchInfo,
    Report,
)

NEAREST = "like it in words, not shown to be it (forensics kb show ID)"
VERDICT_STYLE = {"established": "bold green", "likely": "bold yellow", "possible": "bold", "ruled-out": "dim"}
SIDE_MARK = {"for": ("+", "green"), "against": ("-", "red"), "unknown": ("?", "cyan")}
BRIEF_LINES = 24
"""Lines of `--brief`: one classic screen."""


@frozen
class Amount:
    """How much of each list is shown: causes, causes with their grounds, grounds of the first cause and of the others,
    further lists, lines around the first failure, steps of the fix, next steps."""

    causes: int = 6
    argued: int = 3
    grounds: int = 6
    further: int = 3
    rows: int = 8
    around: int = 3
    fix: int = 20
    next: int = 6


FULL = Amount(causes=60, argued=60, grounds=200, further=200, rows=200, fix=200, next=50)
_BRIEF = (
    Amount(causes=3, argued=1, grounds=3, further=0, rows=0, around=0, fix=3, next=1),
    Amount(causes=2, argued=1, grounds=2, further=0, rows=0, around=0, fix=2, next=1),
    Amount(causes=1, argued=1, grounds=1, further=0, rows=0, around=0, fix=1, next=1),
    Amount(causes=1, argued=0, grounds=0, further=0, rows=0, around=0, fix=1, next=1),
)


def render(report: Report, *, width: int = 80, color: bool = False, detail: int = 0, brief: bool = False) -> str:
    """The report as text of at most `width` columns (longer commands are not cut: they are to be copied).

    `detail` 0 shows the main grounds, 1 (`-v`) all of them with facts and every launch's failures. `brief` is one
    screen of at most `BRIEF_LINES` lines.
    """
    if not brief:
        return _draw(report, width, color, FULL if detail else Amount(), detail, brief)
    text = ""
    for amount in _BRIEF:
        text = _draw(report, width, color, amount, 0, brief)
        if text.count("\n") <= BRIEF_LINES:
            return text
    return "".join(text.splitlines(keepends=True)[:BRIEF_LINES])


def quiet(report: Report) -> str:
    """One line: the headline."""
    return clean(report.headline) + "\n"


def _draw(report: Report, width: int, color: bool, amount: Amount, detail: int, brief: bool) -> str:
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="standard" if color else None,
        highlight=False, emoji=False, markup=False, soft_wrap=False, legacy_windows=False,
    )  # fmt: skip
    Page(console, report, amount, detail, brief).draw()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


class Page:
    """Draws the sections in the order in which a reader needs them."""

    def __init__(self, console: Console, report: Report, amount: Amount, detail: int, brief: bool) -> None:
        self.console = console
        self.report = report
        self.amount = amount
        self.detail = detail
        self.brief = brief
        self.place = words.Places(report.sources)
        self.shown_command = ""

    def draw(self) -> None:
        report = self.report
        self.line(Text(clean(report.headline), style="bold"))
        if not self.brief:
            self.line(Text(words.sources_line(report.sources), style="dim"))
        focus = focus_of(report)
        if report.launches and not self.brief:
            self.strip(focus)
        if focus:
            self.first_failure(focus)
            self.causes(focus)
            if not self.brief:
                self.ruled_out(focus)
            self.fix(focus)
            if not self.brief:
                self.attempts()
                if report.baseline is not None:
                    tables.baseline(self, report.baseline)
                else:
                    tables.comparison(self, focus.comparison)
                self.risks(focus)
            self.next(focus)
            if self.detail:
                self.facts(focus)
            if not self.brief:
                self.notes(focus)
        self.problems()

    # -- sections ------------------------------------------------------------------------------------------------

    def strip(self, focus: LaunchInfo | None) -> None:
        launches = self.report.launches
        self.head("Launches" if len(launches) > 1 else "Launch")
        spans = {x.id: f"{x.lines[0]}–{x.lines[1]}" for x in launches}
        wide = max(map(len, spans.values()))
        names = max(len(x.id) for x in launches)
        drawn = [words.stage_strip(x, self.console.width) for x in launches]
        long = max(len(course) for course, _ in drawn)
        if names + wide + 7 + long + max(len(end) for _, end in drawn) > self.console.width:
            long = 0  # too narrow for endings that stand below each other
        for launch, (course, end) in zip(launches, drawn, strict=True):
            text = Text("▸ " if launch is focus else "  ")
            text.append(f"{launch.id:<{names}}  ", style="bold" if launch is focus else "")
            text.append(f"{spans[launch.id]:<{wide}}  ", style="dim")
            text.append(course).append(" " * (long - len(course) + 1)).append(end)
            text.truncate(self.console.width, overflow="ellipsis")
            self.line(text)
            missing = words.missing_ranks(launch)
            if missing:
                self.line(Text(missing, style="red" if launch is focus else "dim"), indent=4 + names)

    def first_failure(self, launch: LaunchInfo) -> None:
        first = launch.first_failure
        if first is None:
            return
        self.head("First failure")
        place = Text(self.place(first.where), style="bold")
        place.append(f"  {first.stage}, {words.reporters(first)}", style="not bold")
        self.line(place, indent=2, hang=2)
        for row in words.context_rows(first, self.console.width - 4, self.amount.around):
            self.line(row, indent=2, hang=len(row.plain.partition("│")[0]) + 2 if "│" in row.plain else 0)
        if first.suspect_ranks:
            why = f": {clean(first.suspect_why)}" if first.suspect_why else ""
            self.line(
                Text.assemble((f"suspect {words.rank_ranges(first.suspect_ranks)}", "bold"), why), indent=2, hang=2
            )
        followers = [f for f in launch.failures if f.role in ("cascade", "teardown") and f.count]
        if followers and not self.brief:
            count = sum(f.count for f in followers)
            told = (
                "1 later line is a consequence of it" if count == 1 else f"{count:,} later lines are consequences of it"
            )
            self.line(Text(told, "dim"), indent=2)
        if self.detail:
            for failure in followers:
                self.line(Text(f"{failure.role}  {clean(failure.text, 160)}  {self.place(failure.where)}"), 4, 2)

    def causes(self, launch: LaunchInfo) -> None:
        found = live(launch)
        if not found:
            if launch.first_failure or self.report.symptom:
                self.head("Causes")
                self.line(Text("none of the known causes fits; see what to collect below"), indent=2)
            self.nearest(launch)
            return
        self.head("Causes")
        shown = found[: self.amount.causes]
        for number, hypothesis in enumerate(shown, 1):
            self.hypothesis(number, hypothesis)
        if len(found) > len(shown):
            self.line(Text(f"{len(found) - len(shown)} more with -v", style="dim"), indent=2)
        self.nearest(launch)

    def nearest(self, launch: LaunchInfo) -> None:
        """Findings whose logs have words like the failure's: where to read on, no causes."""
        named = {h.finding for h in launch.hypotheses}
        near = [name for name in launch.nearest if name not in named]
        if near and not self.brief:
            self.line(Text(f"{NEAREST}: {', '.join(near)}", style="dim"), indent=2, hang=2)

    def hypothesis(self, number: int, hypothesis: HypothesisInfo) -> None:
        title = Text(f"{number}. ")
        title.append(hypothesis.verdict, style=VERDICT_STYLE[hypothesis.verdict])
        title.append(f"  {clean(hypothesis.title)}")
        if hypothesis.finding:
            title.append(f"  [{hypothesis.finding}]", style="dim")
        self.line(title, indent=2, hang=3)
        if number > self.amount.argued:
            return
        room = self.amount.grounds if number == 1 else self.amount.further
        shown = hypothesis.grounds if self.detail else words.main_grounds(hypothesis.grounds, room)
        told = any(ground_text(g) == hypothesis.why for g in shown)  # with its place, so once is enough
        weighty = number == 1 or hypothesis.verdict != "possible" or self.detail
        if hypothesis.why and not told and not self.brief and weighty:
            self.line(Text(clean(hypothesis.why)), indent=5)
        for ground in shown:
            self.ground(ground)
        if len(hypothesis.grounds) > len(shown) and not self.brief:
            self.line(Text(f"  -v shows {words.left_out(hypothesis.grounds, shown)}", style="dim"), indent=5)

    def ground(self, ground: GroundInfo) -> None:
        mark, style = SIDE_MARK[ground.side]
        text = Text.assemble((f"{mark} ", f"bold {style}"), clean(ground.why or ground.condition))
        if ground.where:
            text.append(f"  {self.place(ground.where[0])}", style="dim")
            if len(ground.where) > 1:
                text.append(f" and {len(ground.where) - 1} more", style="dim")
        self.line(text, indent=5, hang=2)
        if ground.side == "unknown" and ground.settle and self.detail:
            self.line(Text(f"to settle: {clean(ground.settle)}", style="dim"), indent=9)

    def ruled_out(self, launch: LaunchInfo) -> None:
        gone = ruled_out(launch)
        if not gone:
            return
        self.head("Ruled out")
        shown = gone[: self.amount.rows]
        for hypothesis in shown:
            against = [g for g in hypothesis.grounds if g.side == "against"]
            reason = hypothesis.why or next((g.why or g.condition for g in against), "")
            text = Text(f"× {clean(hypothesis.title)}")
            text.append(f": {clean(reason)}", style="dim")
            place = next((g.where[0] for g in against if g.where), None)
            if place:
                text.append(f"  {self.place(place)}", style="dim")
            self.line(text, indent=2, hang=2)
        self.more(len(gone) - len(shown))

    def fix(self, launch: LaunchInfo) -> None:
        best = next((h for h in live(launch) if h.fix), None)
        if best is None:
            return
        self.head(f"Fix for {best.finding or best.id}")
        steps = list(fix_lines(best.fix))
        for line, note in steps[: self.amount.fix]:
            style = {"+": "green", "-": "red"}.get(line[0], "")
            if self.brief:
                line = as_alternative(line, note)
            self.line(Text(line, style=style), indent=2, hang=2)
            if note and not self.brief:
                self.line(Text(clean(note), style="dim"), indent=4)
        self.more(len(steps) - self.amount.fix)
        changed = None if self.brief else command_diff(best, launch)
        if changed is not None:
            self.shown_command = changed.after
            self.line(Text("The first of them, as a command", style="dim"), indent=2)
            for row in words.command_rows(changed, self.console.color_system is not None):
                self.copyable(row, indent=2)

    def attempts(self) -> None:
        tried = [a for a in self.report.attempts if a.changed]
        if len(self.report.attempts) < 2 or not tried:
            return
        self.head("Tried")
        for attempt in self.report.attempts:
            self.attempt(attempt)

    def attempt(self, attempt: AttemptInfo) -> None:
        change = "; ".join(change_text(c) for c in attempt.changed) or "as it was"
        text = Text(f"{attempt.launch}  ")
        text.append(clean(change), style="bold")
        outcome = clean(outcome_text(attempt))
        room = max(24, 2 * self.console.width - 24 - len(text))
        text.append(f" → {outcome if self.detail else words.cut(outcome, room)}")
        self.line(text, indent=2, hang=4)
        for finding, why in sorted(attempt.refutes.items()):
            told = f"speaks against {finding}" + (f": {clean(why)}" if self.detail else "")
            self.line(Text(told, style="dim"), indent=6, hang=2)

    def risks(self, launch: LaunchInfo) -> None:
        if not launch.risks:
            return
        self.head("Risks" if launch.first_failure is None else "Other warnings that are known to matter")
        for risk in launch.risks[: self.amount.rows]:
            place = f"  {self.place(risk.where[0])}" if risk.where else ""
            self.line(Text(f"! {clean(risk.title or risk.finding)}{place}"), indent=2, hang=2)
            step = next((line for line, _ in fix_lines(risk.fix)), "")
            if step and not step.startswith("· not applicable"):
                self.line(Text(step, style="dim"), indent=4, hang=2)
        self.more(len(launch.risks) - self.amount.rows)

    def next(self, launch: LaunchInfo) -> None:
        if not launch.next:
            return
        self.head("Next")
        for number, step in enumerate(launch.next[: self.amount.next], 1):
            self.line(Text(f"{number}. {clean(step.do)}"), indent=2, hang=3)
            if step.command and same_command(step.command, self.shown_command):
                self.line(Text("the command above", style="dim"), indent=5)
            elif step.command:
                self.copyable(Text(clean(step.command)), indent=5)

    def facts(self, launch: LaunchInfo) -> None:
        self.head("Facts")
        shown = [(n, f) for n, f in sorted(launch.facts.items()) if not says_nothing(n, f.value, launch)]
        if shown:
            told = (
                f"places are line:column of {words.file_name(launch.path)}" if launch.path else "places are line:column"
            )
            self.line(Text(told, "dim"), indent=2)
        wide = min(max((len(n) for n, _ in shown), default=0), 36)
        for name, fact in shown:
            text = Text(f"{clean(name):<{wide}}  {clean(value_text(fact.value), 200)}")
            if fact.where:
                text.append(f"  {words.near_place(fact.where, launch)}", style="dim")
            self.line(text, indent=2, hang=4)
        left = len(launch.facts) - len(shown)
        if left:
            self.line(Text(f"{left} more arguments are unset, off or the release's default", "dim"), indent=2)

    def notes(self, launch: LaunchInfo) -> None:
        notes = [*launch.notes, *(n for s in self.report.sources for n in s.notes), *self.report.omitted]
        unread = [
            f"{words.file_name(s.path)}: {s.unparsed_lines:,} of {s.lines:,} lines are of no known kind"
            for s in self.report.sources
            if s.unparsed_lines
        ]
        shown = [*notes, *(unread if self.detail else [])]
        if shown:
            self.head("What is not known")
            for note in dict.fromkeys(shown):
                self.line(Text(f"· {clean(note)}", style="dim"), indent=2, hang=2)

    def problems(self) -> None:
        if not self.report.problems:
            return
        self.head("Problems")
        for problem in self.report.problems[: 2 if self.brief else 100]:
            line = f":{problem.line}" if problem.line else ""
            place = f"{problem.path}{line}: " if problem.path else ""
            hint = f" ({problem.hint})" if problem.hint else ""
            self.line(Text(clean(f"{place}{problem.message}{hint}"), style="red"), indent=2, hang=2)

    # -- drawing -------------------------------------------------------------------------------------------------

    def head(self, title: str) -> None:
        if not self.brief:
            self.console.print()
        self.console.print(Text(title, style="bold underline"))

    def more(self, count: int) -> None:
        """How many entries are left out."""
        if count > 0 and not self.brief:
            self.line(Text(f"{count} more with -v", style="dim"), indent=2)

    def line(self, text: Text, indent: int = 0, hang: int = 0) -> None:
        """Print wrapped text; `hang` further columns of indent for the lines after the first."""
        width = max(20, self.console.width - indent - hang)
        if len(text) <= width + hang and "\n" not in text.plain:
            width += hang
        rows = text.wrap(self.console, width, overflow="fold", no_wrap=False)
        for number, row in enumerate(rows):
            self.console.print(Padding(row, (0, 0, 0, indent + (hang if number else 0))), overflow="fold")

    def copyable(self, command: Text, indent: int) -> None:
        """A command on one physical line however long, so that it can be copied."""
        self.console.print(Text(" " * indent).append(command), soft_wrap=True)
