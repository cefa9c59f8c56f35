"""One launched server from start to end: log, stages, limits, probe. The tree is ended on every way out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any

from forensics.frozen import frozen
from forensics.replay.host import Host
from forensics.replay.live import LiveLog, State
from forensics.replay.probe import Check, Load, judge_load, judge_sanity, load_requests, sanity_requests
from forensics.schema.options import Options
from forensics.schema.report import Report

LIMITS = {
    "starting": 300.0,
    "config": 300.0,
    "init": 900.0,
    "load": 7200.0,
    "kv-pool": 900.0,
    "graph-capture": 3600.0,
    "warmup": 1200.0,
}
"""Seconds that a stage may take before the run is given up as inconclusive."""
_POLL_S = 0.3


@frozen
class Start:
    """What to start. `argv` is run without a shell; `address` is the server's own (host, port)."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    address: tuple[str, int] = ("127.0.0.1", 30000)
    cidfile: str | None = None
    client: tuple[str, ...] = ()


@frozen
class Outcome:
    """How one launched server did. `end`: answered (alive after the probe), died, timeout, interrupted.

    `report` is the analysis of its whole log; `checks` those of the probe; `why` one sentence.
    """

    end: str
    why: str
    report: Report | None
    checks: tuple[Check, ...] = ()
    seconds: float = 0.0
    exit_code: int | None = None
    reached: str = ""

    @property
    def passed(self) -> bool:
        """Alive, and every check of the probe held."""
        return self.end == "answered" and all(check.held for check in self.checks)


class Runner:
    """Starts one server through a host and follows it."""

    def __init__(
        self,
        host: Host,
        log: Path,
        remote_log: str,
        mark: str,
        *,
        limits: dict[str, float] | None = None,
        options: Options | None = None,
        tell: Callable[[State], None] = lambda state: None,
    ) -> None:
        self.host = host
        self.live = LiveLog(log, options or Options())
        self.remote_log = remote_log
        self.mark = mark
        self.limits = {**LIMITS, **(limits or {})}
        self.tell = tell
        self.code: int | None = None
        self.alive = True

    def run(self, start: Start, load: Load, recorded: list[dict[str, Any]] | None = None) -> Outcome:
        """Start, wait until ready, probe, load, stop. Never leaves a process behind."""
        began = time.monotonic()
        try:
            self.host.ask(
                "start", argv=list(start.argv), env=start.env, cwd=start.cwd, log=self.remote_log, mark=self.mark,
                cidfile=start.cidfile, client=list(start.client),
            )  # fmt: skip
            outcome = self._ready() or self._probe(start, load, recorded or [], began)
        finally:
            self.host.ask("stop", grace=15)
            self._drain()
        state = self.live.state(now=True)
        return Outcome(
            outcome.end, outcome.why, self.live.report, outcome.checks, time.monotonic() - began, self.code, state.stage
        )

    def _pump(self) -> State:
        """Fetch what the log gained and judge it."""
        data, self.alive, code = self.host.read_log(self.remote_log, self.live.size)
        self.code = code if code is not None else self.code
        self.live.add(data)
        state = self.live.state()
        self.tell(state)
        return state

    def _drain(self) -> None:
        while True:
            data, _, code = self.host.read_log(self.remote_log, self.live.size)
            self.code = self.code if self.code is not None else code
            self.live.add(data)
            if not data:
                return

    def _ready(self) -> Outcome | None:
        """None once the server is ready; else the outcome."""
        stage, since = "", time.monotonic()
        while True:
            state = self._pump()
            if state.ready:
                return None
            if not self.alive:
                return self._died("before it was ready")
            if state.stage != stage:
                stage, since = state.stage, time.monotonic()
            limit = self.limits.get(stage, 1800.0)
            if time.monotonic() - since > limit:
                why = f"it stayed in stage {stage} for more than {limit:.0f} s"
                return Outcome("timeout", why, None)
            time.sleep(_POLL_S)

    def _probe(self, start: Start, load: Load, recorded: list[dict[str, Any]], began: float) -> Outcome:
        host, port = start.address
        model = self._model(host, port)
        checks: list[Check] = []
        for requests, judge, crowd in (
            (sanity_requests(model), judge_sanity, 1),
            (load_requests(model, load, recorded), judge_load, load.concurrency),
        ):
            self.host.ask("load", requests=requests, port=port, host=host, concurrency=crowd, seconds=load.seconds)
            reply = self.host.ask("load_poll")
            while not reply["ended"]:
                self._pump()
                time.sleep(_POLL_S)
                reply = self.host.ask("load_poll")
            self._pump()
            checks += judge(reply["results"])
            if not self.alive:
                return self._died("while it was probed", checks)
        until = time.monotonic() + load.settle
        while time.monotonic() < until and self.alive:
            state = self._pump()
            time.sleep(_POLL_S)
        if not self.alive or state.failed:
            return self._died("after the probe", checks)
        return Outcome("answered", f"it answered {len(checks)} checks", None, tuple(checks), time.monotonic() - began)

    def _model(self, host: str, port: int) -> str:
        import json

        reply = self.host.ask("http", method="GET", path="/v1/models", host=host, port=port, timeout=20)
        try:
            return str(json.loads(reply["text"])["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            return "default"

    def _died(self, when: str, checks: list[Check] | None = None) -> Outcome:
        code = f", exit code {self.code}" if self.code is not None else ""
        return Outcome("died", f"the server ended {when}{code}", None, tuple(checks or ()))
