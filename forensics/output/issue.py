"""Exactly what an upstream bug report needs: what happened, reproduction, environment. No hypotheses as facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from forensics.output.clean import clean
from forensics.output.markdown import code_block, environment, escape, excerpt
from forensics.output.view import focus_of, ground_text, live, says_nothing, setting_name, value_text
from forensics.schema.report import LaunchInfo, Report

_DERIVED = (
    "args.tokenizer_path",
    "args.served_model_name",
    "args.random_seed",
    "args.port",
    "args.host",
    "args.device",
)
"""Arguments that the program fills in by itself, or that say nothing about the bug."""
_LONGEST = 100
"""Characters of a value: longer ones are dumps of settings that the program derived."""


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
    flags = list(_flags(launch))
    if not flags:
        return code_block(["the log does not state the launch command"])
    note = "The log does not hold the command; these are its arguments that are not the defaults:"
    return [note, "", *code_block([clean(" ".join(["python3 -m sglang.launch_server", *flags]))], "sh")]


def _flags(launch: LaunchInfo) -> Iterator[str]:
    """The arguments of the dump as flags, without those that are unset or known to be the release's default."""
    for name, fact in sorted(launch.facts.items()):
        value = fact.value
        if not name.startswith("args.") or name in _DERIVED or says_nothing(name, value, launch):
            continue
        flag = setting_name(name)
        if len(str(value)) > _LONGEST:
            continue
        yield flag if value is True else f"{flag} {shlex.quote(clean(value_text(value)))}"
