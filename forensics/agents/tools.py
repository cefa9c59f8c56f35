"""What each tool does, as functions of names and words; the protocol is in server.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from forensics.agents.jail import Jail
from forensics.agents.reply import USUAL, bound, reply
from forensics.analysis import masker, read, report
from forensics.cli.times import parse_time
from forensics.diagnose.diagnose import choose_focus
from forensics.diagnose.explain import explain_finding
from forensics.diagnose.places import Places
from forensics.engine.explain import explain_line
from forensics.errors import UsageError
from forensics.knowledge.draft_report import from_report
from forensics.knowledge.library import Library, library
from forensics.knowledge.search import search
from forensics.knowledge.store import Knowledge, load
from forensics.output.fixes import fix_line
from forensics.output.json import render
from forensics.replay.base import base_command
from forensics.replay.edits import Change
from forensics.replay.plan import make_plan
from forensics.replay.steps import alternatives, changes_of, left_open
from forensics.schema.options import SYMPTOMS, Options
from forensics.schema.part import Part
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report

MAX_DRAFT = 60_000


@dataclass
class Toolbox:
    """The tools over one jail. Knowledge is loaded once; `kb` and `rules` are the user's own, never the agent's."""

    jail: Jail
    kb: tuple[Path, ...] = ()
    rules: tuple[Path, ...] = ()
    config: Path | None = None

    @cached_property
    def knowledge(self) -> Knowledge:
        return load(Options(kb=self.kb, rules=self.rules, config=self.config))

    @cached_property
    def library(self) -> Library:
        return library(self.knowledge)

    # -- tools ---------------------------------------------------------------------------------------------------

    def analyze(
        self,
        paths: Sequence[str],
        launch: str = "last",
        symptom: str = "",
        since: str = "",
        until: str = "",
        env: str = "",
        max_bytes: int = USUAL,
    ) -> str:
        """The JSON report on logs, with its least important parts left out where it is too long."""
        options = self._options(launch, symptom, since, until, env)
        found = self._report(paths, options)
        size = bound(max_bytes)
        data = self._shown(json.loads(render(found, size * 3 // 4)))
        return self._reply(data, said={"headline_of": data.get("focus"), "failed": found.failed()}, limit=size)

    def explain(
        self, paths: Sequence[str], line: int = 0, finding: str = "", launch: str = "last", symptom: str = ""
    ) -> str:
        """How one line was read, or every condition of a finding with held, failed or unknown."""
        options = self._options(launch, symptom)
        files = [str(p) for p in self.jail.files(paths)]
        if line > 0 and len(files) > 1:
            raise UsageError("a line is asked for, and several files are named", hint="name the one file of the line")
        reading = read(files, options, self.knowledge)
        if line > 0:
            return self._reply(self._shown(asdict(explain_line(reading.table, line))))
        if not finding:
            raise UsageError("neither a line nor a finding", hint="give `line` (a number) or `finding` (an id)")
        wanted = choose_focus(reading.cases, options)
        case = next((c for c in reading.cases if c.launch.id == wanted), None)
        if case is None:
            raise UsageError("the logs hold no such launch", hint="analyze lists the launches")
        places = Places((reading.table,), masker(options, self.knowledge.config.secrets))
        return self._reply(self._shown(asdict(explain_finding(finding, case, reading.cases, self.knowledge, places))))

    def search_kb(self, query: str, limit: int = 8) -> str:
        """Findings, rules and deployments that fit words or a pasted log line; the first three with their text."""
        hits = search(query[:4000], self.library, max(1, min(limit, 30)))
        found = [self._entry(asdict(h), with_body=i < 3) for i, h in enumerate(hits)]
        return self._reply(said={"hits": found})

    def compare(self, paths: Sequence[str], baseline: str) -> str:
        """What differs between the logs' launch and a good run: facts, stages, messages, metrics."""
        options = Options(baseline=self.jail.file(baseline), processes=1)
        found = self._report(paths, options)
        focus = _focus(found)
        data = {
            "headline": found.headline,
            "baseline": found.baseline.model_dump() if found.baseline else None,
            "nearest_known_deployment": focus.comparison.model_dump() if focus.comparison else None,
        }
        return self._reply(self._shown(data))

    def propose_experiment(self, paths: Sequence[str], symptom: str = "") -> str:
        """What to try or to collect next, and which hypotheses it would separate."""
        focus = _focus(self._report(paths, self._options("last", symptom)))
        data = {
            "launch": focus.id,
            "hypotheses": [
                {"id": h.id, "finding": h.finding, "title": h.title, "verdict": h.verdict} for h in _live(focus)
            ],
            "next": [s.model_dump() for s in focus.next],
            "changes": [
                {"hypothesis": h.id, "change": [str(c) for c in changes]}
                for h in _live(focus)
                for changes in alternatives(h, focus)
            ],
        }
        return self._reply(self._shown(data))

    def draft_finding(self, paths: Sequence[str], title: str = "", category: str = "", symptom: str = "") -> str:
        """A draft of a finding (and of a rule where none names the failure). Returned as text: nothing is written."""
        found = self._report(paths, self._options("last", symptom))
        try:
            files = from_report(found, self.knowledge.rules, title, "", category)
        except ValueError as error:
            raise UsageError(str(error)) from None
        data = [{"kind": f.kind, "name": f.name, "text": self.jail.shown(f.text)} for f in files]
        return self._reply({"files": data}, limit=MAX_DRAFT)

    def replay_plan(
        self,
        paths: Sequence[str],
        hypothesis: str = "",
        fix: Sequence[str] = (),
        launch_command: str = "",
        symptom: str = "",
    ) -> str:
        """The changed launch command that a replay would run. A dry run: nothing is started, here or elsewhere."""
        focus = _focus(self._report(paths, self._options("last", symptom)))
        base = base_command(focus, launch_command or None)
        chosen = _chosen(focus, hypothesis)
        by_hand: list[str] = []
        if fix:
            changes = [Change.parse(text) for text in fix]
        elif chosen is not None:
            changes, by_hand = ([], []) if left_open(chosen) else changes_of(chosen, focus)
        else:
            changes = []
        if not changes:
            steps = [fix_line(s) for s in chosen.fix] if chosen else []
            return self._reply({"runnable": False, "by_hand": by_hand or steps})
        plan = make_plan(base, changes, by_hand=by_hand, hypothesis=None if fix else chosen)
        data = {
            "runnable": True,
            "finding": plan.finding,
            "base_from": base.origin,
            "notes": list(base.notes),
            "changes": [str(c) for c in plan.changes],
            "before": plan.before,
            "after": plan.after,
            "by_hand": list(plan.by_hand),
            "verify": list(plan.verify),
        }
        return self._reply(self._shown(data), said={"note": "a dry run; a person runs it with `forensics replay`"})

    def _reply(self, untrusted: object = None, *, said: dict[str, Any] | None = None, limit: int = USUAL) -> str:
        return reply(untrusted, said=said, limit=limit, secrets=self.knowledge.config.secrets)

    # -- parts ---------------------------------------------------------------------------------------------------

    def _options(self, launch: str, symptom: str, since: str = "", until: str = "", env: str = "") -> Options:
        if symptom and symptom not in SYMPTOMS:
            raise UsageError(f"symptom {symptom}: not one of {', '.join(SYMPTOMS)}")
        if launch not in ("last", "all") and not (launch.isascii() and launch.isdigit() and int(launch) > 0):
            raise UsageError(f"launch {launch}: not last, all or a number from 1 on")
        return Options(
            launch=launch,
            symptom=symptom or None,
            since=parse_time(since or None),
            until=parse_time(until or None),
            env=(self.jail.file(env),) if env else (),
            processes=1,
        )

    def _report(self, paths: Sequence[str], options: Options) -> Report:
        files = [str(p) for p in self.jail.files(paths)]
        return report(read(files, options, self.knowledge), options, self.knowledge)

    def _shown(self, value: Any) -> Any:
        """The same data as plain values, with paths relative to the root."""
        if isinstance(value, Part):
            return self._shown(value.model_dump())
        if isinstance(value, str):
            return self.jail.shown(value)
        if isinstance(value, dict):
            return {k: self._shown(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._shown(v) for v in value]
        return value

    def _entry(self, hit: dict[str, Any], with_body: bool) -> dict[str, Any]:
        if hit["kind"] == "finding" and with_body:
            finding = self.library.findings[hit["id"]]
            hit["status"], hit["versions"] = finding.status, finding.versions
            hit["must"] = [c.text for c in finding.grounds if c.strength == "must"]
            hit["text"] = finding.body[:3000]
        return hit


def _focus(found: Report) -> LaunchInfo:
    focus = next((x for x in found.launches if x.id == found.focus), None)
    if focus is None:
        raise UsageError("the logs hold no launch of a server")
    return focus


def _live(launch: LaunchInfo) -> list[HypothesisInfo]:
    return [h for h in launch.hypotheses if h.verdict != "ruled-out"]


def _chosen(launch: LaunchInfo, wanted: str) -> HypothesisInfo | None:
    live = _live(launch)
    if not wanted:
        runnable = [h for h in live if alternatives(h, launch)]
        return next(iter(runnable or live), None)
    found = next((h for h in launch.hypotheses if wanted in (h.id, h.finding)), None)
    if found is None:
        known = ", ".join(f"{h.id} ({h.finding})" for h in live) or "none"
        raise UsageError(f"no hypothesis {wanted}", hint=f"the report has: {known}")
    return found
