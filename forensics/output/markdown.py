"""The report as Markdown that fits a bug tracker: summary, environment, masked excerpt, command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.output.baseline_rows import rows
from forensics.output.clean import clean
from forensics.output.command_diff import command_diff
from forensics.output.fixes import bare_lines
from forensics.output.terminal_words import file_name
from forensics.output.view import focus_of, ground_text, live, ruled_out
from forensics.schema.report import BaselineInfo, HypothesisInfo, LaunchInfo, Report, Where

# Only what would become markup is escaped, so that the source stays readable too.
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*{}[]<>#|~@$&"})
_WORD_EDGE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_AT_START = re.compile(r"^(\s*(?:\d+(?=[.)](?:\s|$))|(?=[-+](?:\s|$)|[-=]+\s*$)))")
_LINKED = re.compile(r":(?=//|[\w+-]+:)|(?<=\bwww)\.", re.IGNORECASE)


def render(report: Report) -> str:
    """The whole report."""
    lines: list[str] = [f"# {escape(report.headline)}", ""]
    launch = focus_of(report)
    if launch is not None:
        lines += [*_summary(launch), *_causes(launch), *_ruled_out(launch), *_next(launch), *environment(launch)]
    if report.baseline is not None:
        lines += _baseline(report.baseline)
    if len(report.attempts) > 1:
        lines += _attempts(report)
    lines += [f"- {escape(p.message)}" for p in report.problems]
    return "\n".join(lines).rstrip() + "\n"


def escape(text: str, limit: int = 600) -> str:
    """Text from a log inside Markdown: nothing in it can become markup, a link, a mention or HTML."""
    safe = _WORD_EDGE.sub(r"\\_", clean(text, limit).translate(_SPECIAL))
    return _AT_START.sub(r"\1\\", _LINKED.sub(lambda m: "\\" + m[0], safe))


def code_block(lines: list[str], language: str = "text") -> list[str]:
    """A fenced block that its content cannot close."""
    longest = max((len(run) for line in lines for run in _backtick_runs(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *lines, fence, ""]


def _backtick_runs(line: str) -> Iterator[str]:
    run = ""
    for char in line + " ":
        if char == "`":
            run += char
        elif run:
            yield run
            run = ""


def place(where: Where) -> str:
    """`path:line` as inline code."""
    return f"`{file_name(where.path).replace('`', chr(39))}:{where.line}`"


def excerpt(launch: LaunchInfo) -> list[str]:
    """The first failure with its context, line numbers included."""
    first = launch.first_failure
    if first is None:
        return []
    rows = first.context or [first.where.model_copy(update={"text": first.text})]
    return code_block([f"{row.line}: {clean(row.text or '', 400)}" for row in rows])


def environment(launch: LaunchInfo) -> list[str]:
    """Versions, hardware and the flags that differ from nothing: the facts a maintainer asks for first."""
    wanted = [
        f for f in sorted(launch.facts) if f.startswith(("version.", "gpu.", "model.", "weights.", "env.", "launch."))
    ]
    if not wanted:
        return []
    rows = [f"| {escape(name)} | {escape(str(launch.facts[name].value))} |" for name in wanted]
    version = launch.version
    interval = version.exact or f"{version.low or '?'} to {version.high or '?'} (inferred)"
    head = ["## Environment", "", "| fact | value |", "|---|---|", f"| sglang | {escape(interval)} |"]
    return [*head, *rows, ""]


def _summary(launch: LaunchInfo) -> list[str]:
    lines = [f"Launch {launch.id}: reached **{launch.reached}**, {launch.ended}.", ""]
    first = launch.first_failure
    if first is not None:
        who = f"rank {first.rank}" if first.rank else "no rank on the line"
        lines += [f"First failure at {place(first.where)}, {first.stage}, {who}:", "", *excerpt(launch)]
    return lines


def _causes(launch: LaunchInfo) -> list[str]:
    hypotheses = live(launch)
    near = [name for name in launch.nearest if name not in {h.finding for h in launch.hypotheses}]
    told = [f"Like it in words, not shown to be it: {', '.join(f'`{name}`' for name in near)}.", ""] if near else []
    if not hypotheses:
        return ["## Causes", "", "None of the known causes fits.", "", *told] if near else []
    lines = ["## Causes", ""]
    best = next((h for h in hypotheses if h.fix), None)
    for number, hypothesis in enumerate(hypotheses, 1):
        lines += [f"{number}. **{hypothesis.verdict}**: {escape(hypothesis.title)}", *_grounds(hypothesis)]
        if hypothesis.fix:
            lines += ["", *("   " + x for x in code_block(_fix(hypothesis, launch, hypothesis is best), "diff"))]
    return [*lines, "", *told]


def _fix(hypothesis: HypothesisInfo, launch: LaunchInfo, whole: bool) -> list[str]:
    """The steps, and where `whole` the first of them as the changed command."""
    steps = bare_lines(hypothesis.fix)
    changed = command_diff(hypothesis, launch) if whole else None
    return [*steps, "", f"- {changed.before}", f"+ {changed.after}"] if changed else steps


def _grounds(hypothesis: HypothesisInfo) -> list[str]:
    mark = {"for": "for", "against": "against", "unknown": "not known"}
    return [
        f"   - {mark[g.side]}: {escape(ground_text(g))}" + (f" ({place(g.where[0])})" if g.where else "")
        for g in hypothesis.grounds
    ]


def _ruled_out(launch: LaunchInfo) -> list[str]:
    gone = ruled_out(launch)
    if not gone:
        return []
    lines = [f"- {escape(h.title)}: {escape(h.why or 'excluded')}" for h in gone]
    return ["## Ruled out", "", *lines, ""]


def _next(launch: LaunchInfo) -> list[str]:
    if not launch.next:
        return []
    lines = ["## Next", ""]
    for step in launch.next:
        lines.append(f"- {escape(step.do)}")
        if step.command:
            lines += ["", *("  " + x for x in code_block([clean(step.command)], "sh"))]
    return [*lines, ""]


def _baseline(found: BaselineInfo) -> list[str]:
    told = [f"| {escape(r.name)} | {escape(r.here)} | {escape(r.there)} |" for r in rows(found)]
    lines = ["## Against the good run", "", f"{escape(found.path)} {found.launch}, reached {found.reached}.", ""]
    if told:
        lines += ["| | here | there |", "|---|---|---|", *told, ""]
    new = [f"- only here: {escape(w.text or '')} ({place(w)})" for w in found.new_messages]
    return [*lines, *new, *([""] if new else [])]


def _attempts(report: Report) -> list[str]:
    lines = ["## Launches", "", "| launch | changed | outcome |", "|---|---|---|"]
    for attempt in report.attempts:
        changed = ", ".join(f"{c.name}={c.after}" for c in attempt.changed) or "nothing"
        lines.append(f"| {attempt.launch} | {escape(changed)} | {escape(attempt.outcome)} |")
    return [*lines, ""]
