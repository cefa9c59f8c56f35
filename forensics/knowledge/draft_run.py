"""A draft from a run folder of `forensics replay`: what failed, what was changed, and what the two runs prove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forensics.errors import ForensicsError, InputError, UsageError
from forensics.knowledge.draft import near_miss
from forensics.knowledge.draft_report import Proof, launch_line, read_lines, shown_lines
from forensics.replay.edits import Change
from forensics.replay.folder import RunFolder
from forensics.replay.probe import Check
from forensics.replay.run import Outcome
from forensics.schema.report import LaunchInfo, Report
from forensics.timeline.catalog import catalog

READY = "The server is fired up"
_AFTER_READY = 3


def failing_report(folder: Path) -> Report | None:
    """The report about the run's control; None where the run had none or it shows no failure."""
    log = folder / "control.log"
    kept = folder / "control.report.json"
    try:
        if log.is_file():
            from forensics.analysis import analyze
            from forensics.schema.options import Options

            return analyze([str(log)], Options(launch="last"))
        return Report.model_validate_json(kept.read_bytes()) if kept.is_file() else None
    except (ForensicsError, ValueError):
        return None


def proof_of(folder: Path, launch: LaunchInfo | None) -> Proof:
    """What a run proves. `launch` is the failing one. Raises UsageError where the changed command did not pass."""
    journal = RunFolder.open(folder).read()
    try:
        return _proof(folder.name, folder, journal, launch)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise InputError(f"{folder / 'run.json'} is no whole journal: {error!r}") from None


def _proof(name: str, folder: Path, journal: dict[str, Any], launch: LaunchInfo | None) -> Proof:
    steps: dict[str, dict[str, Any]] = journal.get("steps", {})
    outcomes = {step: _outcome(found) for step, found in steps.items() if "end" in found}
    control = outcomes.pop("control", None)
    good = [step for step, outcome in outcomes.items() if outcome.passed]
    word, why = str(journal.get("verdict", "unfinished")), str(journal.get("why", "it did not end"))
    if not good or word not in ("fixed", "passes"):
        raise UsageError(f"{folder}: {word}: {why}", hint="only a run whose changed command passed proves a fix")
    step = journal["step"] if journal.get("step") in good else good[-1]
    changes = [Change.parse(text) for text in journal.get("applied") or journal.get("plan") or ()]
    confirmed = control is not None and _failed(control) and word == "fixed"
    checks = outcomes[step].checks
    return Proof(
        status="confirmed" if confirmed else "suspected",
        fix=tuple(_step(c, number > 0) for number, c in enumerate(changes)),
        verify=tuple(c.name for c in checks),
        source=f"run: {name}",
        fix_text=_fix_text(changes, outcomes[step]),
        history=_history(folder, journal, control, outcomes[step], confirmed),
        settings=_settings(changes, launch),
        near=_near(folder / f"{step}.log", changes),
        keep=frozenset(catalog().dest(c.name) for c in changes if c.kind == "flag"),
    )


def _outcome(found: dict[str, Any]) -> Outcome:
    checks = tuple(Check(**c) for c in found.get("checks", ()))
    return Outcome(str(found["end"]), str(found.get("why", "")), None, checks, float(found.get("seconds", 0)))


def _failed(control: Outcome) -> bool:
    """Whether the unchanged command came to an end that is a failure; a time limit or Ctrl-C proves nothing."""
    return control.end in ("died", "answered") and not control.passed


def _step(change: Change, with_above: bool) -> dict[str, Any]:
    step: dict[str, Any] = {"kind": change.kind, "op": change.op, "name": change.name}
    if change.op == "set" and change.value is not None:
        step["value"] = change.value
    return {**step, "runnable": True, **({"with_above": True} if with_above else {})}


def _fix_text(changes: list[Change], fixed: Outcome) -> str:
    said = " and ".join(f"`{c}`" for c in changes)
    return f"{said}: the server was ready, and {len(fixed.checks)} of {len(fixed.checks)} checks held."


def _history(folder: Path, journal: dict[str, Any], control: Outcome | None, fixed: Outcome, confirmed: bool) -> str:
    on = _hardware(folder)
    lines = [f"Replayed in run {folder.name}{f' on {on}' if on else ''}: {journal['verdict']}."]
    if control is not None:
        lines.append(f"The unchanged command: {control.why} ({control.seconds:.0f} s).")
    lines.append(f"The changed command: {fixed.why} ({fixed.seconds:.0f} s).")
    if not confirmed:
        lines.append("No control failed in this run, so the change is not proved to be why: suspected.")
    return "\n".join(lines)


def _hardware(folder: Path) -> str:
    try:
        host = json.loads((folder / "host.json").read_text(encoding="utf-8"))
        gpus = [str(g["name"]) for g in host.get("gpus", ())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ""
    shown = f"{len(gpus)} × {gpus[0]}" if gpus else "CPU"
    return f"{shown}, sglang {host['sglang']}" if host.get("sglang") else shown


def _settings(changes: list[Change], launch: LaunchInfo | None) -> tuple[str, ...]:
    """Conditions over what the failing launch had where the fix changes something."""
    found = []
    for change in changes:
        fact = f"args.{catalog().dest(change.name)}" if change.kind == "flag" else f"env.{change.name}"
        value = launch.facts[fact].value if launch is not None and fact in launch.facts else None
        if isinstance(value, bool):
            found.append(fact if value else f"not {fact}")
        elif isinstance(value, (str, int, float)) and value != "":
            text = str(value)
            found.append(f"{fact} = {text if text.replace('_', '').replace('.', '').isalnum() else json.dumps(text)}")
    return tuple(found)


def _near(log: Path, changes: list[Change]) -> str:
    """The changed launch as near miss: its arguments, and how it became ready."""
    lines = read_lines(str(log))
    ready = next((i for i, line in enumerate(lines) if READY in line), None)
    if ready is None:
        return ""
    keep = frozenset(catalog().dest(c.name) for c in changes if c.kind == "flag")
    head = launch_line(lines, 0, ready)
    chosen = [*([head] if head is not None else []), *range(ready, min(len(lines), ready + 1 + _AFTER_READY))]
    return near_miss(shown_lines(lines, [i for i in chosen if lines[i].strip()], keep))
