"""The whole of `forensics replay`, from the command line's words to verdict, history and exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.knowledge.roots import load_config
from forensics.replay.base import Base, base_command
from forensics.replay.dump import read_dump
from forensics.replay.facts import HostFacts, ask_facts, server_python
from forensics.replay.folder import RunFolder, unfinished
from forensics.replay.host import Address, Host
from forensics.replay.load import choose_load
from forensics.replay.plan import Plan, read_config
from forensics.replay.preflight import nodes_of, preflight, refuse
from forensics.replay.probe import Load, read_recorded
from forensics.replay.propose import Proposer, analysis_of
from forensics.replay.record import Tried, remember
from forensics.replay.request import Request, keep, resumed
from forensics.replay.run import LIMITS
from forensics.replay.sealed import masked_copy
from forensics.replay.session import Session, Settings, clean_up, remote_folder
from forensics.replay.show import Screen
from forensics.replay.verify import Failing, Judgement, focus
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo, Report

GOOD = ("fixed", "passes")
_LOG_KEPT = 64 << 20
"""Bytes of a given log that are copied into the run folder; of a larger one the report is kept."""


@frozen
class Job:
    """What was planned, and over which log."""

    request: Request
    screen: Screen
    report: Report | None
    launch: LaunchInfo | None
    proposer: Proposer
    plans: tuple[Plan, ...]
    load: Load
    recorded: tuple[dict[str, Any], ...]


def run_replay(request: Request) -> int:
    """Plan, show, and run when allowed. Exit code as the command documents it."""
    screen = Screen(sys.stdout)
    request = _allowing(resumed(request))
    _limits(request.limits)
    _duration(request.budget)
    Address.parse(request.host)
    report = analysis_of(request)
    for problem in report.problems if report else ():
        screen.say(f"problem: {problem.path or ''}:{problem.line or ''}: {problem.message}", "red")
    launch = focus(report)
    with ExitStack() as stack:
        opened: list[Host] = []

        def host() -> Host:
            if not opened:
                opened.append(stack.enter_context(Host(Address.parse(request.host), _ssh(request))))
            return opened[0]

        base, recorded = _base(request, launch, host)
        proposer = Proposer(request, base, launch, read_config(base, lambda path: _text(request, host, path)))
        plans = proposer.plans()
        load = choose_load(
            request.logs, launch, request.concurrency, request.requests, request.tokens, request.seconds, request.settle
        )
        screen.plan(plans[0], load, others=plans[1:], ladder=request.ladder)
        if nodes_of(plans[0].reads()) > 1:
            screen.nodes(plans[0])
            return 0
        if not request.yes and not screen.agrees():
            screen.say("dry run: nothing was started; add --yes to run it")
            return 0
        job = Job(request, screen, report, launch, proposer, tuple(plans), load, tuple(recorded))
        return _run(job, host())


def run_cleanup(request: Request) -> int:
    """End what earlier replays left running on the host. 0 when nothing is left, else 1."""
    found = unfinished(request.runs)
    left = []
    if not found:
        print(f"no unfinished replay in {request.runs}")
        return 0
    with Host(Address.parse(request.host), _ssh(request)) as where:
        for folder in found:
            gone = clean_up(where, folder)
            left += gone
            print(f"{folder.name}: {'still running: ' + str(gone) if gone else 'nothing of it runs any more'}")
    return int(bool(left))


def _allowing(request: Request) -> Request:
    """The request with the variables that forensics.toml lets a fix set."""
    allowed = load_config(Options(kb=request.kb)).allow_env
    return replace(request, allow_env=tuple(dict.fromkeys((*request.allow_env, *allowed))))


def _ssh(request: Request) -> tuple[str, ...]:
    return ("-F", str(request.ssh_config)) if request.ssh_config else ()


def _text(request: Request, host: Callable[[], Host], path: str) -> str | None:
    """The text of a file on the host where the server will run."""
    if request.host != "local":
        text: str | None = host().ask("get", path=path)["text"]
        return text
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _base(request: Request, launch: LaunchInfo | None, host: Callable[[], Host]) -> tuple[Base, list[dict[str, Any]]]:
    """The base command, and the recorded requests. A crash dump gives both; reading one needs --trust-dump."""
    given = request.launch is not None or request.launch_file is not None
    recorded = read_recorded(request.requests_file) if request.requests_file is not None else []
    if request.crash_dump is None:
        return base_command(launch, request.launch, request.launch_file, request.python, env=True), recorded
    python = [request.python]
    if given:
        python = server_python(base_command(None, request.launch, request.launch_file))
    found, command = read_dump(host(), request.crash_dump, python, request.trust_dump)
    base = base_command(launch, request.launch, request.launch_file, request.python, dumped=command, env=True)
    return base, recorded or found


def _run(job: Job, host: Host) -> int:
    request, screen, plans = job.request, job.screen, job.plans
    folder = _folder(job, host)
    until = time.monotonic() + _duration(request.budget)
    facts = ask_facts(host, plans[0].base)
    folder.save_tree("host.json", facts.data)
    found = preflight(host, plans[0], facts, job.launch, remote_folder(host, folder))
    screen.preflight(found)
    try:
        refuse(found, request.force)
    except ReplayError as error:
        refused = Judgement("inconclusive", error.message)
        folder.update(verdict=refused.word, why=refused.why)
        screen.verdict(refused, folder, None)
        raise
    settings = Settings(
        load=job.load, recorded=job.recorded, limits=_limits(request.limits), options=Options(kb=request.kb)
    )
    session = Session(host, folder, settings, Failing.of(job.launch), screen.progress)
    load = [job.load.concurrency, job.load.count, job.load.tokens]
    folder.save_tree("requests.json", {"load": load, "recorded": job.recorded[:1000]})
    with screen.live():
        tried, plan = _carry_out(job, session, lambda: time.monotonic() > until)
    judgement = tried[-1].judgement
    applied = [str(c) for c in plan.changes] if plan else []
    step = session.name_of(plan.fixed) if plan else None
    folder.update(verdict=judgement.word, why=judgement.why, applied=applied, **({"step": step} if step else {}))
    screen.verdict(judgement, folder, plan)
    _remember(job, folder, tried, facts, host)
    if judgement.word != "inconclusive":
        folder.finished()
    return 0 if judgement.word in GOOD else 1


def _folder(job: Job, host: Host) -> RunFolder:
    """The run folder: a new one with the request and the evidence so far, or the one that is continued, after what an
    interrupted run may have left is ended."""
    request = job.request
    if request.resume is not None:
        folder = RunFolder.open(request.resume)
        left = clean_up(host, folder)
        if left:
            raise ReplayError(f"processes of this replay still run: {left}", hint="end them by hand, then resume")
        return folder
    folder = RunFolder.create(request.runs)
    folder.write({"state": "idle", "host": request.host, "plan": [str(c) for c in job.plans[0].changes]})
    keep(request, folder)
    if job.report is not None:
        folder.save("given.report.json", job.report.model_dump_json(indent=1) + "\n")
    for number, log in enumerate(map(Path, request.logs), 1):
        if log.is_file() and log.stat().st_size <= _LOG_KEPT:
            masked_copy(log, folder.path / f"given-{number}-{log.name}")
    return folder


def _carry_out(job: Job, session: Session, late: Callable[[], bool]) -> tuple[list[Tried], Plan | None]:
    """All that was tried, the last one deciding, and the plan that it is about."""
    request, screen = job.request, job.screen
    plan: Plan | None
    if request.ladder:
        judgement, plan, rungs = session.ladder(list(job.plans), request.control, late)
        tried = [Tried(one, found) for one, found in rungs]
        screen.tried(rungs)
        if not rungs or judgement != rungs[-1][1]:
            tried.append(Tried(plan, judgement))
    else:
        plan = job.plans[0]
        judgement, outcome, before = session.prove(plan, request.control)
        tried = [Tried(plan, judgement)]
        screen.outcomes(outcome, before)
    if request.minimise and plan is not None and judgement.word in GOOD and len(plan.changes) > 1:
        least, known = session.minimise(list(plan.changes), job.proposer.plan, late)
        if len(least) < len(plan.changes):
            plan = replace(job.proposer.plan(least), finding=plan.finding, title=plan.title)
            tried.append(Tried(plan, judgement))
        screen.least(least, known)
    return tried, plan


def _remember(job: Job, folder: RunFolder, tried: list[Tried], facts: HostFacts, host: Host) -> None:
    where = remember(job.request.db, folder, tried, job.report, facts, str(host.address))
    job.screen.say(f"Stored in {where}")


def _limits(texts: tuple[str, ...]) -> dict[str, float]:
    limits = {}
    for text in texts:
        stage, _, value = text.partition("=")
        try:
            limits[stage] = float(value)
        except ValueError:
            raise ReplayError(f"--limit {text}: not a limit", hint="write stage=seconds, e.g. load=3600") from None
        if stage not in LIMITS:
            raise ReplayError(f"--limit {text}: no stage {stage}", hint=f"the stages: {', '.join(LIMITS)}")
    return limits


def _duration(text: str) -> float:
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    number = text[:-1] if unit else text
    try:
        return float(number) * (unit or 1.0)
    except ValueError:
        raise ReplayError(f"--budget {text}: not a time", hint="write 90m or 3h") from None
