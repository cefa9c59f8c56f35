"""One replay in one run folder: control, fixed launch, verdict; each finished step is journalled, never repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.replay.edits import CONTAINER_CLIENTS, Change, insert_for_container, read_server
from forensics.replay.folder import RunFolder
from forensics.replay.host import Host
from forensics.replay.live import State
from forensics.replay.plan import Plan
from forensics.replay.preflight import server_address
from forensics.replay.probe import Check, Load
from forensics.replay.run import Outcome, Runner, Start
from forensics.replay.verify import Failing, Judgement, judge
from forensics.schema.options import Options
from forensics.schema.report import Report


@dataclass(frozen=True, slots=True)
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
        self.remote = self._remote_folder()

    def _remote_folder(self) -> str:
        if self.host.address.host == "local":
            return str((self.folder.path / "agent").absolute())
        return f"{self.host.about['cwd']}/.cache/forensics/{self.folder.name}"

    # -- steps ---------------------------------------------------------------------------------------------------

    def step(self, name: str, text: str, shell: bool) -> Outcome:
        """Launch `text` as step `name`, or give what the journal holds of exactly this step."""
        done = self.folder.read().get("steps", {}).get(name)
        if done is not None and done.get("command") == text and "end" in done:
            return self._recall(name, done)
        start = self._start(name, text, shell)
        self.folder.update(state="running", mark=self.folder.mark, step=name, containers=self._containers(start))
        for old in (self.folder.log(name),):
            old.unlink(missing_ok=True)
        runner = Runner(
            self.host, self.folder.log(name), f"{self.remote}/{name}.log", self.folder.mark,
            limits=self.settings.limits, options=self.settings.options, tell=lambda state: self.tell(name, state),
        )  # fmt: skip
        try:
            outcome = runner.run(start, self.settings.load, list(self.settings.recorded))
        finally:
            self.folder.update(state="idle")
        self._remember(name, text, outcome)
        return outcome

    def _start(self, name: str, text: str, shell: bool) -> Start:
        mark = f"FORENSICS_REPLAY_ID={self.folder.mark}"
        cidfile = f"{self.remote}/{name}.cid"
        marked, client = insert_for_container(text, cidfile, mark)
        command = read_server(marked)
        words = [word.value for word in command.words]
        argv = ["bash", "-c", marked] if shell else ["env", *words] if "=" in words[0] else words
        return Start(
            tuple(argv), cwd=self.settings.cwd, address=server_address(command),
            cidfile=cidfile if client else None, container_client=client,
        )  # fmt: skip

    def _containers(self, start: Start) -> list[str]:
        return [start.container_client or "", start.cidfile] if start.cidfile else []

    def _remember(self, name: str, text: str, outcome: Outcome) -> None:
        if outcome.report is not None:
            self.folder.save(f"{name}.report.json", outcome.report.model_dump_json(by_alias=True, indent=1) + "\n")
        kept = {k: v for k, v in asdict(replace(outcome, report=None)).items() if k != "report"}
        journal = self.folder.read()
        steps = {**journal.get("steps", {}), name: {"command": text, **kept}}
        self.folder.update(steps=steps)

    def _recall(self, name: str, done: dict[str, Any]) -> Outcome:
        path = self.folder.path / f"{name}.report.json"
        report = Report.model_validate_json(path.read_text()) if path.exists() else None
        checks = tuple(Check(**c) for c in done["checks"])
        return Outcome(done["end"], done["why"], report, checks, done["seconds"], done["exit_code"], done["reached"])

    # -- whole replays -------------------------------------------------------------------------------------------

    def prove(self, plan: Plan, control: bool, name: str = "fixed") -> tuple[Judgement, Outcome, Outcome | None]:
        """Control first (when asked), then the changed command; the verdict over both."""
        before = self.step("control", plan.before, plan.base.shell) if control else None
        if before is not None and before.passed:
            judgement = judge(self.before, before, before)
            return judgement, before, before
        fixed = self.step(name, plan.after, plan.base.shell)
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

    def minimise(self, changes: list[Change], plan_of: Callable[[list[Change]], Plan]) -> list[Change]:
        """The smallest set of changes that still passes (delta debugging); each tried subset is a journalled step."""
        return minimal(changes, lambda subset: self._passes(subset, plan_of))

    def _passes(self, subset: list[Change], plan_of: Callable[[list[Change]], Plan]) -> bool:
        import hashlib

        plan = plan_of(subset)
        name = "set-" + hashlib.sha256(plan.after.encode()).hexdigest()[:10]
        return self.step(name, plan.after, plan.base.shell).passed


def minimal(changes: list[Change], passes: Callable[[list[Change]], bool]) -> list[Change]:
    """Delta debugging: a subset of `changes`, in order, from which no single change can be left out. `passes` is asked
    about each subset at most once, and never about the empty set."""
    known: dict[tuple[Change, ...], bool] = {}

    def ask(subset: list[Change]) -> bool:
        key = tuple(subset)
        if key not in known:
            known[key] = bool(subset) and passes(subset)
        return known[key]

    if not ask(changes):
        raise ReplayError(
            "all changes together do not pass, so there is nothing to minimise", hint="find a passing set first"
        )
    parts = 2
    while len(changes) > 1:
        size = -(-len(changes) // parts)
        chunks = [changes[i : i + size] for i in range(0, len(changes), size)]
        smaller = next((c for c in chunks if ask(c)), None)
        if smaller is None:
            rests = [[x for x in changes if x not in c] for c in chunks]
            smaller = next((r for r in rests if r and len(r) < len(changes) and ask(r)), None)
            parts = max(parts - 1, 2) if smaller else parts * 2
        else:
            parts = 2
        if smaller is None:
            if size == 1:
                break
            parts = min(parts, len(changes))
            continue
        changes = smaller
    return changes


def clean_up(host: Host, folder: RunFolder) -> list[int]:
    """End what a dead replay left behind; gives the processes that would not go. Containers are stopped by id."""
    journal = folder.read()
    containers = journal.get("containers") or []
    if len(containers) == 2 and containers[0].rpartition("/")[2] in CONTAINER_CLIENTS and Path(containers[1]).exists():
        container = Path(containers[1]).read_text().strip()
        if container:
            host.ask("ask", argv=[containers[0], "stop", "-t", "10", container], timeout=60)
    left = list(host.ask("kill_marked", mark=journal.get("mark") or folder.mark)["left"])
    folder.update(state="idle" if not left else "running")
    return left
