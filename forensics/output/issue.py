"""Exactly what an upstream bug report needs: what happened, reproduction, environment. No hypotheses as facts."""

from __future__ import annotations

from forensics.output.clean import clean
from forensics.output.markdown import code_block, environment, escape, excerpt
from forensics.output.view import focus_of, ground_text, live
from forensics.schema.report import LaunchInfo, Report

_PRIVATE = frozenset({"host", "port"})
"""Arguments that say where the server listens, and nothing about the bug."""
MAX_NOTE = 4000
"""Characters of a sentence that names arguments."""


def render(report: Report) -> str:
    """The bug report's Markdown."""
    launch = focus_of(report)
    if launch is None:
        return f"{escape(report.headline)}\n"
    lines = ["### Describe the bug", "", escape(report.headline), "", *excerpt(launch)]
    best = next(iter(live(launch)), None)
    if best is not None:
        lines += [f"A log analysis calls this {best.verdict}: {escape(best.title)}. Grounds:", ""]
        lines += [f"- {escape(ground_text(g))} ({g.side})" for g in best.grounds] + [""]
    lines += ["### Reproduction", "", *_reproduction(launch), "### Environment", "", *environment(launch)[2:]]
    return "\n".join(lines).rstrip() + "\n"


def _reproduction(launch: LaunchInfo) -> list[str]:
    command = launch.facts.get("launch.command")
    if command is not None:
        return code_block([clean(str(command.value))], "sh")
    from forensics.replay.given import given_arguments

    given = given_arguments(launch)
    if given is None:
        return code_block(["the log does not state the launch command"])
    stated = [a for a in given.arguments if a.dest not in _PRIVATE]
    note = "The log does not hold the command. Of its dump, these are neither defaults nor the server's own choices:"
    lines = [note, ""]
    lines += code_block([clean(" ".join(["python3 -m sglang.launch_server", *map(str, stated)]))], "sh")
    hidden = [a.words[0] for a in given.arguments if a.dest in _PRIVATE]
    told = [f"left out, for privacy: {', '.join(hidden)}"] if hidden else []
    told += given.notes()
    return [*lines, *(f"- {escape(said[:1].upper() + said[1:], MAX_NOTE)}." for said in told), *([""] if told else [])]
