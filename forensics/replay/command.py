"""The whole of `forensics replay`, from the command line's words to verdict, history and exit code."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.knowledge.roots import load_config
from forensics.replay.base import Base, base_command
from forensics.replay.dump import read_dump
from forensics.replay.edits import Change, read_server
from forensics.replay.facts import ask_facts, python_words
from forensics.replay.folder import RunFolder, unfinished
from forensics.replay.host import Address, Host
from forensics.replay.load import choose_load
from forensics.replay.plan import Plan, alternatives, changes_of, make_plan
from forensics.replay.preflight import nodes_of, preflight, refuse
from forensics.replay.probe import Load, read_recorded
from forensics.replay.record import remember
from forensics.replay.session import Session, Settings, clean_up
from forensics.replay.show import Screen
from forensics.replay.verify import Failing, Judgement
from forensics.schema.options import Options
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report

GOOD = ("fixed", "passes")


@dataclass(frozen=True, slots=True)
class Request:
    """The command line. See `forensics replay --help` for each."""

    logs: tuple[str, ...] = ()
    hypothesis: str | None = None
    fixes: tuple[str, ...] = ()
    launch: str | None = None
    launch_file: Path | None = None
    python: str = "python3"
    host: str = "local"
    ssh_config: Path | None = None
    yes: bool = False
    control: bool = False
    ladder: bool = False
    budget: str = "6h"
    minimise: bool = False
    concurrency: int = 0
    requests: int = 0
    tokens: int = 64
    seconds: float = 600.0
    requests_file: Path | None = None
    crash_dump: Path | None = None
    trust_dump: bool = False
    limits: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    force: bool = False
    runs: Path = Path("forensics-runs")
    resume: Path | None = None
    db: Path | None = None
    symptom: str | None = None
    kb: tuple[Path, ...] = ()


def run_replay(request: Request) -> int:
    """Plan, show, and run when allowed. Exit code as the command documents it."""
    screen = Screen(sys.stdout)
    request = _allowing(request)
    report = _analysis(request)
    for problem in report.problems if report else ():
        screen.say(f"problem: {problem.path or ''}:{problem.line or ''}: {problem.message}", "red")
    launch = _focus(report)
    base = base_command(launch, request.launch, request.launch_file, request.python)
    plans = _plans(request, base, report, launch)
    load = choose_load(request.logs, launch, request.concurrency, request.requests, request.tokens, request.seconds)
    screen.plan(plans[0], load, others=plans[1:], ladder=request.ladder)
    if nodes_of(read_server(plans[0].after)) > 1:
        screen.nodes(plans[0])
        return 0
    if not request.yes and not screen.agrees():
        screen.say("dry run: nothing was started; add --yes to run it")
        return 0
    return _run(request, screen, report, launch, plans, load)


def _allowing(request: Request) -> Request:
    """The request with the variables that forensics.toml lets a fix set."""
    allowed = load_config(Options(kb=request.kb)).allow_env
    return replace(request, allow_env=tuple(dict.fromkeys((*request.allow_env, *allowed))))


def _ssh(request: Request) -> tuple[str, ...]:
    return ("-F", str(request.ssh_config)) if request.ssh_config else ()


def run_cleanup(request: Request) -> int:
    """End what earlier replays left running on the host. 0 when nothing is left, else 1."""
    runs = request.runs
    found = unfinished(runs)
    left = []
    if found:
        with Host(Address.parse(request.host), _ssh(request)) as where:
            for folder in found:
                gone = clean_up(where, folder)
                left += gone
                print(f"{folder.name}: {'still running: ' + str(gone) if gone else 'nothing of it runs any more'}")
    else:
        print("no unfinished replay")
    return int(bool(left))


def _analysis(request: Request) -> Report | None:
    if not request.logs:
        return None
    from forensics.analysis import analyze

    return analyze(list(request.logs), Options(symptom=request.symptom, kb=request.kb))


def _focus(report: Report | None) -> LaunchInfo | None:
    if report is None:
        return None
    return next((x for x in report.launches if x.id == report.focus), None)


def _plans(request: Request, base: Base, report: Report | None, launch: LaunchInfo | None) -> list[Plan]:
    """One plan, or with --ladder one for each runnable alternative of each hypothesis, best first."""
    if request.fixes:
        changes = [Change.parse(text) for text in request.fixes]
        return [make_plan(base, changes, allowed_env=request.allow_env)]
    if launch is None:
        raise ReplayError("there is no log to take a fix from", hint="say what to change with --fix 'set --flag=value'")
    chosen = _hypotheses(request, launch)
    plans = []
    for hypothesis in chosen:
        plans += _plans_of(request, base, hypothesis, launch)
        if plans and not request.ladder:
            break
    if plans:
        return plans
    by_hand = [line for h in chosen for line in changes_of(h, launch)[1]]
    steps = "".join(f"\n  {line}" for line in by_hand)
    raise ReplayError(
        f"no hypothesis has a fix that replay can apply{':' if steps else ''}{steps}",
        hint="do it by hand, or name a change with --fix 'set --flag=value'",
    )


def _hypotheses(request: Request, launch: LaunchInfo) -> list[HypothesisInfo]:
    live = [h for h in launch.hypotheses if h.verdict != "ruled-out"]
    if request.hypothesis is None:
        return live
    found = [h for h in launch.hypotheses if request.hypothesis in (h.id, h.finding)]
    if not found:
        known = ", ".join(f"{h.id} ({h.finding})" for h in live) or "none"
        raise ReplayError(f"no hypothesis {request.hypothesis}", hint=f"the report has: {known}")
    return found


def _plans_of(request: Request, base: Base, hypothesis: HypothesisInfo, launch: LaunchInfo) -> list[Plan]:
    changes, by_hand = changes_of(hypothesis, launch)
    sets = alternatives(hypothesis, launch) if request.ladder else [changes]
    plans = []
    for one in sets:
        if not one:
            continue
        try:
            plans.append(make_plan(base, one, by_hand=by_hand, hypothesis=hypothesis, allowed_env=request.allow_env))
        except ReplayError:
            if not request.ladder:
                raise
    return plans


def _run(
    request: Request, screen: Screen, report: Report | None, launch: LaunchInfo | None, plans: list[Plan], load: Load
) -> int:
    folder = RunFolder.open(request.resume) if request.resume else RunFolder.create(request.runs)
    until = time.monotonic() + _duration(request.budget)
    with Host(Address.parse(request.host), _ssh(request)) as host:
        if request.resume is None:
            folder.write({"state": "idle", "host": request.host, "plan": [str(c) for c in plans[0].changes]})
        facts = ask_facts(host, plans[0].base)
        folder.save("host.json", _json(facts.data))
        found = preflight(host, plans[0], facts, launch, folder.path)
        screen.preflight(found)
        refuse(found, request.force)
        recorded = _recorded(request, host, plans[0].base)
        settings = Settings(
            load=load, recorded=tuple(recorded), limits=_limits(request.limits), options=Options(kb=request.kb)
        )
        session = Session(host, folder, settings, Failing.of(launch), screen.progress)
        folder.save(
            "requests.json", _json({"load": [load.concurrency, load.count, load.tokens], "recorded": recorded[:1000]})
        )
        judgement, plan = _carry_out(request, session, screen, plans, lambda: time.monotonic() > until)
        folder.update(verdict=judgement.word, why=judgement.why, applied=[str(c) for c in plan.changes] if plan else [])
        remember(request.db, folder, plan, judgement, launch, facts, str(host.address))
    screen.verdict(judgement, folder, plan)
    return 0 if judgement.word in GOOD else 1


def _carry_out(
    request: Request, session: Session, screen: Screen, plans: list[Plan], late: Any
) -> tuple[Judgement, Plan | None]:
    if request.ladder:
        judgement, plan, tried = session.ladder(plans, request.control, late)
        screen.tried(tried)
    else:
        plan = plans[0]
        judgement, outcome, before = session.prove(plan, request.control)
        screen.outcomes(outcome, before)
    if request.minimise and plan is not None and judgement.word in GOOD and len(plan.changes) > 1:
        base = plan.base
        least = session.minimise(
            list(plan.changes), lambda subset: make_plan(base, subset, allowed_env=request.allow_env)
        )
        plan = make_plan(base, least, allowed_env=request.allow_env)
        screen.say("the smallest set that still works: " + ", ".join(str(c) for c in least))
    return judgement, plan


def _recorded(request: Request, host: Host, base: Base) -> list[dict[str, Any]]:
    if request.requests_file is not None:
        return read_recorded(request.requests_file)
    if request.crash_dump is not None:
        return read_dump(host, request.crash_dump, python_words(base)[0], request.trust_dump)[0]
    return []


def _limits(texts: tuple[str, ...]) -> dict[str, float]:
    limits = {}
    for text in texts:
        stage, equals, value = text.partition("=")
        try:
            limits[stage] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ReplayError(f"--limit {text}: not a limit", hint="write stage=seconds, e.g. load=3600")
    return limits


def _duration(text: str) -> float:
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    number = text[:-1] if unit else text
    try:
        return float(number) * (unit or 1.0)
    except ValueError:
        raise ReplayError(f"--budget {text}: not a time", hint="write 90m or 3h") from None


def _json(data: object) -> str:
    import json

    return json.dumps(data, indent=1, sort_keys=True) + "\n"
