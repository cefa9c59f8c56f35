"""Typed fixes as SARIF fixes: edits of the launch command, which the run carries as an artifact of its own.

SARIF's fixes replace text in an artifact. The only text that a fix of a flag or variable changes is the launch command.
The log records it, but a record is not to be edited, and the script that started the server is not among the inputs: so
the command is embedded as an artifact with its contents, and the replacements are in that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forensics.output.clean import clean
from forensics.output.command_diff import CommandDiff, command_diffs
from forensics.schema.report import HypothesisInfo, LaunchInfo

MAX_FIXES = 8


class Commands:
    """The launch commands of a run as artifacts, one per launch that some fix edits."""

    def __init__(self) -> None:
        self.artifacts: list[dict[str, Any]] = []
        self._known: dict[str, dict[str, Any]] = {}

    def fixes(self, hypothesis: HypothesisInfo, launch: LaunchInfo) -> list[dict[str, Any]]:
        """One fix for each alternative that edits the command; none where the log does not state it."""
        found = []
        for diff in command_diffs(hypothesis, launch):
            change = {"artifactLocation": self._place(diff, launch), "replacements": list(replacements(diff))}
            found.append(
                {"description": {"text": message_text(f"Relaunch with: {diff.words}")}, "artifactChanges": [change]}
            )
            if len(found) == MAX_FIXES:
                break
        return found

    def _place(self, diff: CommandDiff, launch: LaunchInfo) -> dict[str, Any]:
        place = self._known.get(launch.id)
        if place is None:
            place = {"uri": f"launch-command/{launch.id}.sh", "index": len(self.artifacts)}
            stated = f", as line {diff.where.line} of the log states it" if diff.where else ""
            self.artifacts.append(
                {
                    "location": place,
                    "description": {"text": f"The launch command of {launch.id}{stated}"},
                    "mimeType": "text/x-shellscript",
                    "contents": {"text": diff.before},
                }
            )
            self._known[launch.id] = place
        return place


def replacements(diff: CommandDiff) -> Iterator[dict[str, Any]]:
    """Regions of the one line of the command (columns from 1, the end excluded) with what stands there afterwards."""
    at, start, text, open_ = 1, 1, "", False
    for sign, piece in [*diff.pieces, ("=", "")]:
        if sign == "=":
            if open_:
                yield _replacement(start, at, text)
            at, text, open_ = at + len(piece), "", False
            continue
        if not open_:
            start, open_ = at, True
        if sign == "-":
            at += len(piece)
        else:
            text += piece


def _replacement(start: int, end: int, text: str) -> dict[str, Any]:
    region = {"startLine": 1, "startColumn": start, "endLine": 1, "endColumn": end}
    return {"deletedRegion": region, **({"insertedContent": {"text": text}} if text else {})}


def message_text(text: str) -> str:
    """Plain text for a SARIF message: its brackets would be read as links, its braces as placeholders."""
    flat = clean(text, 1000).replace("\\", "\\\\")
    return flat.replace("[", "\\[").replace("]", "\\]").replace("{", "{{").replace("}", "}}")
