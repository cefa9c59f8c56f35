"""The loop: read, note, warn, and at the server's death the report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import field

from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.schema.options import Options
from forensics.schema.report import Report
from forensics.watch.digest import Digest
from forensics.watch.follow import Follower
from forensics.watch.intake import ALARMS, Intake, Piece
from forensics.watch.judge import BOUNDED, is_dead, is_foreign, judge_all, judge_digest
from forensics.watch.patience import Patience, Waits
from forensics.watch.state import State
from forensics.watch.voice import Voice


@frozen
class Plan:
    """`tick`: seconds between two looks. `silence`: seconds without a line that are worth a warning. `pid`: process
    whose end is the server's death (0: none). `keep_going`: go on after a death. `until_failure`: a failure that the
    server did not get over ends the watch even where the process lives on."""

    waits: Waits = field(default_factory=Waits)
    tick: float = 0.5
    silence: float = 120.0
    pid: int = 0
    keep_going: bool = False
    until_failure: bool = False


class Watch:
    """Follows one input. `on_report` gets the final report of each life of the server."""

    def __init__(
        self,
        follower: Follower,
        options: Options,
        knowledge: Knowledge,
        voice: Voice,
        plan: Plan,
        on_report: Callable[[Report], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.follower, self.options, self.knowledge = follower, options, knowledge
        self.voice, self.plan, self.on_report, self.clock = voice, plan, on_report, clock
        self.digest = Digest()
        self.intake = Intake(self.digest, options)
        self.state = State()
        self.patience = Patience(plan.waits)
        self.last_line = clock()
        self.parts: list[tuple[int, str]] = [(0, follower.name)]
        self.last_report: Report | None = None
        self.caught_up = False
        self.doomed = False

    def run(self) -> int:
        """Until the server's death (or for good with keep_going). Gives the exit code: 0 stopped cleanly, 1 failed."""
        code = 0
        while True:
            over = self.step()
            if over:
                code = self.finish()
                if not self.plan.keep_going or self.follower.ended():
                    return code
                self.begin_anew()

    def step(self) -> bool:
        """One look at the input; gives whether this life of the server is over."""
        data = self.follower.read(self.plan.tick)
        self._new_part()
        ended = self.follower.ended() or (not data and self._process_gone())
        piece = self.intake.feed(data, final=ended)
        self.state.glimpse(self.intake.unfinished())
        now = self.clock()
        if piece.lines:
            self.last_line = now
            if self.doomed:
                self.doomed = False
                self.patience.news()
        changed = self._take(piece, now)
        if ended:
            return True
        # What stood in the file before the watch began is read to its end first: it is no news.
        self.caught_up = self.caught_up or len(data) < (1 << 20)
        over = self.caught_up and self.patience.due(now) and self._judge()
        silent = self.clock() - self.last_line
        over = over or (self.doomed and silent >= self.plan.waits.maximum)
        if silent >= self.plan.silence and self.intake.lines:
            self.voice.silence(silent, self.state)
        self.voice.state(self.state, silent, now, changed)
        return over

    def _new_part(self) -> None:
        """After rotation or truncation lines count from 1 again; what was begun before is finished."""
        for notice in self.follower.notices():
            self.voice.say(f"note: {notice}")
            self._take(self.intake.feed(b"", final=True), self.clock())
            name, number = self.follower.name, len(self.parts)
            self.parts[-1] = (self.parts[-1][0], f"{name} (before, part {number})")
            self.parts.append((self.intake.lines, name))

    def place(self, line: int) -> str:
        """Name and line of a line of the whole stream."""
        start, name = max(part for part in self.parts if part[0] < line)
        return f"{name}:{line - start}"

    def _take(self, piece: Piece, now: float) -> bool:
        changed = self.state.take(piece)
        for seen in piece.seen:
            if seen.kind in ALARMS:
                self.patience.trouble(now)
            elif seen.new:
                self.patience.news()
        if changed:
            self.patience.news()
        return changed

    def _judge(self) -> bool:
        """Judge the digest, warn, and say whether the server is over."""
        begun = time.process_time()
        found = judge_digest(self.follower.name, self.digest, self.options, self.knowledge)
        self.patience.judged(self.clock(), time.process_time() - begun)
        if found is None or not found.launches:
            return False
        launch = found.launches[-1]
        self.state.judged(launch)
        if is_foreign(found):
            self.voice.say("warning: no line of an sglang server so far: is this its log?", "foreign")
        self.voice.warn(found, self.place)
        if self.plan.until_failure and launch.first_failure is not None and launch.ended not in ("running", "log-ends"):
            return True
        # Without a line that states the end, a failure that nothing follows is a death only after a long wait.
        self.doomed = is_dead(found) and not self.state.ending and launch.ended == "crashed"
        return is_dead(found) and not self.doomed

    def _process_gone(self) -> bool:
        if not self.plan.pid:
            return False
        try:
            os.kill(self.plan.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def drain(self, seconds: float) -> None:
        """Read on until the stream ends, for the last words of a server that was interrupted together with us."""
        until = self.clock() + seconds
        while self.clock() < until and not self.follower.ended():
            data = self.follower.read(0.2)
            self._take(self.intake.feed(data, final=self.follower.ended()), self.clock())

    def finish(self) -> int:
        """The final report; 1 where it names a failure or the server was killed or hung, 2 where no server was seen."""
        found = self._final()
        if found is None:
            self.voice.say("nothing that a server prints was read")
            return 2
        self.last_report = found
        self.on_report(found)
        if is_foreign(found):
            self.voice.say("no line of an sglang server was read: is this its log?")
            return 2
        launch = found.launches[-1] if found.launches else None
        bad = launch is not None and (launch.first_failure is not None or launch.ended in ("crashed", "killed", "hung"))
        return int(bad)

    def _final(self) -> Report | None:
        sources = self.follower.sources()
        if sources is not None:
            return judge_all(sources, self.options, self.knowledge)
        found = judge_digest(self.follower.name, self.digest, self.options, self.knowledge)
        return found and found.model_copy(update={"omitted": [*found.omitted, BOUNDED]})

    def begin_anew(self) -> None:
        """Another life of the server: earlier lines stay in the file, not in the digest."""
        self.digest.clear()
        self.intake.forget_shapes()
        self.state = State()
        self.patience = Patience(self.plan.waits)
        self.doomed = False
