"""Exactly what an upstream bug report needs: what happened, reproduction, environment. No hypotheses as facts."""

from __future__ import annotations

from forensics.output.clean import clean
from forensics.output.markdown import code_block, environment, escape, excerpt
from forensics.output.view import focus_of, ground_text, live
from forensics.schema.report import LaunchInfo, Report


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
    flags = [f"{name[5:]}={fact.value}" for name, fact in sorted(launch.facts.items()) if name.startswith("args.")]
    return code_block([clean(flag) for flag in flags] or ["the log does not state the launch command"])
