"""One replay in one run folder: control, fixed launch, verdict; each finished step is journalled, never repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, field, replace
from typing import Any

from forensics.frozen import frozen
from forensics.replay.container import CONTAINER_CLIENTS, Container
from forensics.replay.edits import Change, read_server
from forensics.replay.folder import RunFolder
from forensics.replay.host import Host
from forensics.replay.live import State
from forensics.replay.minimal import minimal
from forensics.replay.plan import Plan, Relaunch
from forensics.replay.probe import Check, Load
from forensics.replay.run import Outcome, Runner, Start
from forensics.replay.verify import Failing, Judgement, hangs_again, judge
from forensics.schema.options import Options
from forensics.schema.report import Report


@frozen
class Settings:
    """How to run: `limits` are seconds per stage, `recorded` requests to replay, `options` those of the analysis."""

    load: Load = field(default_factory=Load)
    recorded: tuple[dict[str, Any], ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    cwd: str | None = None
    options: Options = field(default_factory=Options)


class Session:
    """Runs steps of one replay; `tell(step, state)` hears how each goes on."""

    def __init__(
        self,
        host: Host,
        folder: RunFolder,
        settings: Settings,
        before: Failing | None,
        tell: Callable[[str, State], None] = lambda step, state: None,
    ) -> None:
        self.host = host
        self.folder = folder
        self.settings = settings
        self.before = before
        self.tell = tell
        self.remote = remote_folder(host, folder)

    # -- steps ---------------------------------------------------------------------------------------------------

    def step(self, name: str, launch: Relaunch) -> Outcome:
        """Launch a command as step `name`, or give what the journal holds of exactly this launch."""
        found = self._done(launch.key)
        if found is not None:
            return self._recall(*found)
        start, container = self._start(name, launch)
        client = {"client": list(container.client), "cidfile": container.cidfile} if container else {}
        self.folder.update(state="running", mark=self.folder.mark, step=name, container=client)
        self.folder.log(name).unlink(missing_ok=True)
        runner = Runner(
            self.host, self.folder.log(name), f"{self.remote}/{name}.log", self.folder.mark,
            limits=self.settings.limits, options=self.settings.options, tell=lambda state: self.tell(name, state),
        )  # fmt: skip
        try:
            outcome = runner.run(start, self.settings.load, list(self.settings.recorded))
        finally:
            self.folder.update(state="idle")
        clear(self.host, self.remote, [name])
        self._remember(name, launch, start, outcome)
        return outcome

    def name_of(self, launch: Relaunch) -> str | None:
        """The finished step that launched exactly this."""
        found = self._done(launch.key)
        return found[0] if found else None

    def _done(self, key: str) -> tuple[str, dict[str, Any]] | None:
        steps: dict[str, dict[str, Any]] = self.folder.read().get("steps", {})
        return next(((n, d) for n, d in steps.items() if d.get("command") == key and "end" in d), None)

    def _start(self, name: str, launch: Relaunch) -> tuple[Start, Container | None]:
        mark = f"FORENSICS_REPLAY_ID={self.folder.mark}"
        copy = f"{self.remote}/{name}.config.yaml"
        if launch.copied and launch.config is not None:
            self.host.ask("put", path=copy, text=launch.config.text)
            self.folder.save_lines(f"{name}.config.yaml", launch.config.text)
        text, container = launch.prepared(copy, f"{self.remote}/{name}.cid", mark)
        words = [word.value for word in read_server(text).words]
        if launch.base.shell:
            argv = ["bash", "-c", launch.base.prologue + text]
        else:
            argv = ["env", *words] if "=" in words[0] else words
        host, port = launch.address()
        return Start(
            tuple(argv), cwd=self.settings.cwd, address=(host, port or 0),
            cidfile=container.cidfile if container else None, client=container.client if container else (),
        ), container  # fmt: skip

    def _remember(self, name: str, launch: Relaunch, start: Start, outcome: Outcome) -> None:
        if outcome.report is not None:
            self.folder.save(f"{name}.report.json", outcome.report.model_dump_json(indent=1) + "\n")
        kept = {k: v for k, v in asdict(replace(outcome, report=None)).items() if k != "report"}
        steps = {**self.folder.read().get("steps", {}), name: {"command": launch.key, "argv": list(start.argv), **kept}}
        self.folder.update(steps=steps)

    def _recall(self, name: str, done: dict[str, Any]) -> Outcome:
        path = self.folder.path / f"{name}.report.json"
        report = Report.model_validate_json(path.read_text()) if path.exists() else None
        checks = tuple(Check(**c) for c in done["checks"])
        return Outcome(done["end"], done["why"], report, checks, done["seconds"], done["exit_code"], done["reached"])

    # -- whole replays -------------------------------------------------------------------------------------------

    def prove(self, plan: Plan, control: bool, name: str = "fixed") -> tuple[Judgement, Outcome, Outcome | None]:
        """Control first (when asked), then the changed command; the verdict over both."""
        before = self.step("control", plan.control) if control else None
        if before is not None and (before.passed or _undecided(self.before, before)):
            return judge(self.before, before, before), before, before
        fixed = self.step(name, plan.fixed)
        return judge(self.before, fixed, before), fixed, before

    def ladder(
        self, plans: list[Plan], control: bool, out_of_time: Callable[[], bool]
    ) -> tuple[Judgement, Plan | None, list[tuple[Plan, Judgement]]]:
        """Plans in order until one passes or the budget ends. Gives the last verdict, its plan, and all tried."""
        tried: list[tuple[Plan, Judgement]] = []
        for number, plan in enumerate(plans, 1):
            if out_of_time():
                break
            judgement, _, _ = self.prove(plan, control, f"rung{number}")
            tried.append((plan, judgement))
            if judgement.word in ("fixed", "passes", "not-reproduced"):
                return judgement, plan, tried
        if not tried:
            return Judgement("inconclusive", "no plan could be tried within the budget"), None, tried
        if out_of_time() and len(tried) < len(plans):
            return Judgement("inconclusive", "the budget ended before every hypothesis was tried"), None, tried
        return tried[-1][1], tried[-1][0], tried

    def minimise(
        self, changes: list[Change], plan_of: Callable[[list[Change]], Plan], out_of_time: Callable[[], bool]
    ) -> tuple[list[Change], bool]:
        """The smallest set of changes that still passes (delta debugging), and whether the time was enough to know it;
        each tried subset is a journalled step."""
        return minimal(changes, lambda subset: self._passes(subset, plan_of), out_of_time)

    def _passes(self, subset: list[Change], plan_of: Callable[[list[Change]], Plan]) -> bool:
        plan = plan_of(subset)
        return self.step("set-" + hashlib.sha256(plan.fixed.key.encode()).hexdigest()[:10], plan.fixed).passed


def remote_folder(host: Host, folder: RunFolder) -> str:
    """Where the agent keeps logs, id files and changed config files of a run, on its own host."""
    if host.address.host == "local":
        return str((folder.path / "agent").absolute())
    return f"{host.about['cwd']}/.cache/forensics/{folder.name}"


def clear(host: Host, remote: str, steps: Iterable[str]) -> None:
    """Remove what finished steps left on the server's host: the run folder holds the logs, masked."""
    paths = [f"{remote}/{step}.{what}" for step in steps for what in ("log", "config.yaml", "cid")]
    host.ask("clear", paths=paths, folder=remote)


def _undecided(failing: Failing | None, control: Outcome) -> bool:
    """Whether a control run proves nothing, so that a changed launch after it would not, either."""
    return control.end in ("timeout", "interrupted") and not hangs_again(failing, control)


def clean_up(host: Host, folder: RunFolder) -> list[int]:
    """End what a dead replay left behind; gives the processes that would not go. Containers are stopped by id."""
    journal = folder.read()
    container = journal.get("container") or {}
    client, cidfile = list(container.get("client") or []), container.get("cidfile")
    if not client or client[-1].rpartition("/")[2] not in CONTAINER_CLIENTS:
        client = []
    mark = journal.get("mark") or folder.mark
    left = list(host.ask("kill_marked", mark=mark, client=client, cidfile=cidfile)["left"])
    folder.update(state="idle" if not left else "running")
    if not left:
        step = journal.get("step")
        clear(host, remote_folder(host, folder), {*journal.get("steps", {}), *((step,) if step else ())})
    return left
