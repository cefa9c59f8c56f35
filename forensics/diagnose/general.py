"""What can be said when no known cause fits: general facts of reading a multi-rank log, as modest hypotheses.

Each reader below looks at the first failure and says what kind of thing it is, on which ground. They name a mechanism
or a place, never a known cause, and stay at `possible`.
"""

from __future__ import annotations

from dataclasses import replace

from forensics.diagnose.grounds import FOR, Ground
from forensics.diagnose.plain import plain_of
from forensics.diagnose.standstill import last_work
from forensics.diagnose.titles import NO_MESSAGE, message_of
from forensics.frozen import frozen
from forensics.late import Late
from forensics.rulebook.case import Case
from forensics.schema.launch import Failure
from forensics.schema.rank import Rank
from forensics.timeline.arithmetic import exit_code_in
from forensics.timeline.suspects import PEER

_GB = r"([\d.]{1,16}) ?(GiB|MiB|GB|MB)"
_OOM = Late(rf"Tried to allocate {_GB}.{{0,400}}?{_GB} is free")
_TOKENS = Late(r"\b(?:Prefill|Decode) out of memory\. Try to lower")
_DEVICE = Late(r"\b(NPU|XPU|HPU|MPS) out of memory")
_SHARED = Late(r"Required: (\d+), Hardware limit: (\d+)")
_TYPE = Late(r"([A-Za-z_][\w.]{0,100}(?:Error|Exception|Exit|Interrupt))\b")
_ASSERT = Late(r"device-side assert triggered|assertion `|assertion failed|\.cuh?:\d+.{0,300}assert|cuda_error_assert")
_MODULE = Late(r"^(?:[A-Za-z_]\w{0,60}\.){1,12}(?=[A-Z]\w{0,80}(?::|$))")
_TYPED = Late(r"^[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt)(?::|$)|^[A-Z]\w{0,80}: *$")
SAYS = "It says: "
"""Begins the title of a failure that has no reading but its own words."""
MAX_SAID = 120
_SIGNALS = {-9: "SIGKILL", -11: "SIGSEGV", -6: "SIGABRT", -7: "SIGBUS", -15: "SIGTERM", 137: "SIGKILL", 139: "SIGSEGV",
            134: "SIGABRT", 143: "SIGTERM"}  # fmt: skip


@frozen
class General:
    """A general reading: `title` for the report, `why` in one sentence, its grounds, what to collect and what to do.
    `settled`: the words say what happened, so that taking parts of the server out would show nothing."""

    title: str
    why: str
    grounds: tuple[Ground, ...]
    collect: tuple[tuple[str, str], ...] = ()
    do: tuple[tuple[str, str], ...] = ()
    settled: bool = False
    waited: bool = False
    """The failing line is that of a rank that waited: what it waited for is not told by it."""


def read(case: Case) -> General | None:
    """The general reading of a launch's first failure, or None where the log shows none."""
    failure = case.launch.failure(case.launch.first_failure)
    if failure is None:
        return None
    for reader in _READERS:
        found = reader(case, failure)
        if found is not None:
            waited = reader in (_silent_rank, _lost_peer)
            return replace(found, settled=found.settled or reader in _SETTLED, waited=waited)
    return _exception(case, failure)


def _plain(case: Case, failure: Failure) -> General | None:
    """A failure whose own words say what it is."""
    row = plain_of(failure.text)
    if row is None:
        return None
    title, grounds = row.title + _during(failure, ","), (_ground(case, failure, row.why),)
    return General(title, row.why, grounds, row.collect, row.do, row.settled)


def _lost_peer(case: Case, failure: Failure) -> General | None:
    """The rank that reports a broken connection lives; the peer is the one in its line."""
    found = PEER.search(failure.text)
    if found is None:
        return None
    peer = found.group(1) or found.group(2) or found.group(3)
    why = f"the rank that reports lost its connection to {peer}; the reporter itself was still at work"
    if failure.suspect_ranks:
        names = ", ".join(str(r) for r in failure.suspect_ranks[:8])
        why = f"{why}; behind it, one of {names}: {failure.suspect_why}"
    return General(f"The peer at {peer} was lost{_during(failure)}", why, (_ground(case, failure, why),), (
        (f"the log of the process at {peer}: what it printed last", ""),
    ))  # fmt: skip


def _token_pool(case: Case, failure: Failure) -> General | None:
    """A batch that got no tokens from the KV pool: the pool's own count decides, GPU memory is not involved."""
    if not _TOKENS.search(failure.text):
        return None
    why = "; ".join(failure.reading) or "the KV pool had no tokens for the batch; this is not a lack of GPU memory"
    return General(f"The KV pool gave no tokens{_during(failure)}", why, (_ground(case, failure, why),), (
        ("the batch lines before it: running requests, token usage of every pool, queue", ""),
    ))  # fmt: skip


def _memory(case: Case, failure: Failure) -> General | None:
    if "out of memory" not in failure.text.lower() or "shared memory" in failure.text.lower():
        return None
    found = _OOM.search(failure.text)
    why = "; ".join(failure.reading) or "GPU memory ran out"
    if found and not failure.reading:
        tried, free = _mib(found.group(1), found.group(2)), _mib(found.group(3), found.group(4))
        short = (
            "the request is larger than what is free, so this is no fragmentation"
            if tried > free
            else "enough is free in sum, so the free memory is in pieces"
        )
        why = f"tried {found.group(1)} {found.group(2)} with {found.group(3)} {found.group(4)} free: {short}"
    where = f" in {failure.component}" if failure.component else ""
    device = _DEVICE.search(failure.text)
    return General(
        f"{device.group(1) if device else 'GPU'} memory ran out{_during(failure)}{where}",
        why,
        (_ground(case, failure, why),),
        (("memory in use by every process of every GPU, before and at the failure", "nvidia-smi"),),
    )


def _shared_memory(case: Case, failure: Failure) -> General | None:
    found = _SHARED.search(failure.text)
    if not found:
        return None
    wants, gives = found.group(1), found.group(2)
    why = f"a kernel wants {wants} bytes of shared memory per block, the chip gives {gives}; this is not device memory"
    return General("A kernel's tile needs more shared memory than the GPU has", why, (_ground(case, failure, why),), (
        ("which kernel asked (innermost frame), and the tuning file that the log says it loaded for this GPU", ""),
    ))  # fmt: skip


def _exit_code(case: Case, failure: Failure) -> General | None:
    code = exit_code_in(failure.text)
    if code is None:
        return None
    name = _SIGNALS.get(code)
    if name == "SIGKILL":
        why = (
            f"exit code {code} is SIGKILL: nothing in the process failed; the kernel's or the container's memory "
            "killer, or somebody, ended it"
        )
        return General("A process was killed from outside", why, (_ground(case, failure, why),), (
            ("whether the kernel's memory killer ended it", "dmesg -T | grep -i -E 'killed process|out of memory'"),
            ("memory limit and use of the container", "cat /sys/fs/cgroup/memory.events"),
        ))  # fmt: skip
    if name:
        why = f"exit code {code} is {name}: the process died in native code"
        return General(f"A process died by {name}", why, (_ground(case, failure, why),), (
            ("the native stack of the faulting thread", "PYTHONFAULTHANDLER=1, and gdb -p PID or the core file"),
        ))  # fmt: skip
    why = f"exit code {code}: the child raised or left by itself; its own exception is not in this log"
    return General("A child process ended; its own error is not in this log", why, (_ground(case, failure, why),), (
        ("the complete standard error of the child process, from its start", ""),
    ))  # fmt: skip


def _astray(case: Case, failure: Failure) -> General | None:
    """Stacks that stand in different calls, or timeouts in different collectives: who differs from the rest."""
    stacks = failure.mechanism.startswith("divergence")
    if not stacks and not failure.suspect_why.startswith("it waits in "):
        return None
    who = ", ".join(str(r) for r in failure.suspect_ranks[:8]) or "a rank"
    told = failure.suspect_why.removeprefix("its stack ").removeprefix("it ")
    why = f"{who} {told}: the ranks of a group must make the same collectives in the same order: no network fault"
    title = f"{who[0].upper()}{who[1:]} {told}" if stacks else f"{who} waits in another collective than the others"
    return General(title + _during(failure, ","), why, (_ground(case, failure, why),), (
        ("requests, batch size and log of that rank in the minute before: what it did otherwise than the others", ""),
    ))  # fmt: skip


def _silent_rank(case: Case, failure: Failure) -> General | None:
    if failure.component in ("kv-transfer", "router"):
        return None
    text = failure.text.lower()
    other = "terminated with exception" in text  # a watchdog's thread that met a device's error waited for nobody
    if not ("timeout" in text or "timed out" in text or ("watchdog" in text and not other)):
        return None
    if failure.suspect_ranks:
        who = ", ".join(str(r) for r in failure.suspect_ranks)
        why = f"the ranks that report waited; {who} {failure.suspect_why or 'did not answer'}".rstrip()
        title = f"{who} stopped taking part{_during(failure)}"
    else:
        who = failure.suspect_why or "the log does not show which one"
        why = f"the ranks that report waited for a peer; {who}"
        title = f"A rank stopped taking part{_during(failure)}"
    work = last_work(case, failure)
    if work is not None:
        why = f"{work.why}; {why}" if failure.suspect_ranks else work.why
        title = f"{work.title} when the wait ran out" + _during(failure, ",")
        grounds = (_ground(case, failure, why), _at(case, work.row, work.why))
        return General(title, why, grounds, work.collect, work.do)
    return General(title, why, (_ground(case, failure, why),), (
        ("the Python and native stacks of every scheduler while it hangs", "py-spy dump --native --pid PID"),
        ("use of every GPU while it hangs", "nvidia-smi"),
    ))  # fmt: skip


def _device_assert(case: Case, failure: Failure) -> General | None:
    text = failure.text.lower()
    if _ASSERT.search(text):
        why = "a GPU kernel found a value that it does not accept; the CUDA errors that follow are consequences"
        if "probability tensor" in text:
            why = "the sampler was handed probabilities that are not finite: the numbers broke in an earlier layer"
        return General(f"A device assert{_during(failure)}", why, (_ground(case, failure, why),), (
            ("the failing kernel's own call", "CUDA_LAUNCH_BLOCKING=1 before the same command"),
        ))  # fmt: skip
    return None


def _leak(case: Case, failure: Failure) -> General | None:
    """The idle check that adds up the pool: the sum says whether slots were lost or freed twice."""
    if "leak detected" not in failure.text:
        return None
    off = [r for r in failure.reading if r.endswith(("lost", "freed twice"))]
    why = "; ".join(off or failure.reading) or "the parts of the pool do not add up to its size"
    twice = any(r.endswith("freed twice") for r in off)
    word = "were freed twice" if twice else "were lost" if off else "do not add up"
    return General(f"Slots of the KV cache pool {word}{_during(failure)}", why, (_ground(case, failure, why),))


def _request(case: Case, failure: Failure) -> General | None:
    """A request that fails while the server goes on."""
    if failure.stage != "client":
        return None
    why = "the server goes on: the message is about one request, or about what every request of this kind needs"
    title = f"A request failed: {message_of(failure.text)}"
    return General(title, why, (_ground(case, failure, why),))


def _exception(case: Case, failure: Failure) -> General:
    where = f" in {failure.component}" if failure.component else ""
    spread = _spread(case, failure)
    why = f"first failure{_during(failure)}{where}" + (f"; {spread}" if spread else "")
    return General(_said(failure) or f"{_kind(failure)}{where}{_during(failure)}", why, (_ground(case, failure, why),))


def _said(failure: Failure) -> str:
    """The failure's own words, with the exception's type but not its module; "" where it has none but the type."""
    words = _MODULE.sub("", message_of(failure.text, MAX_SAID))
    told = _TYPED.sub("", words)
    return f"{SAYS}{words}" if told.strip(" .:") and told != NO_MESSAGE else ""


def _kind(failure: Failure) -> str:
    named = _TYPE.match(failure.text)
    return named.group(1) if named else message_of(failure.text)


def _during(failure: Failure, mark: str = "") -> str:
    return f"{mark} during {failure.stage}" if failure.stage not in ("unknown", "client") else ""


def _spread(case: Case, failure: Failure) -> str:
    """One rank or all of them: device, memory or data on the one hand, configuration, shape or version on the other."""
    ranks: set[Rank] = set(failure.ranks)
    expected = case.launch.expected or case.launch.seen
    if len(expected) < 2 or not ranks:
        return ""
    if ranks >= set(expected):
        return "the same on every rank, which speaks for configuration, shape or version"
    if len(ranks) == 1:
        return f"on {next(iter(ranks))} only, which speaks for this rank's device, memory or data"
    return f"on {len(ranks)} of {len(expected)} ranks"


def _ground(case: Case, failure: Failure, why: str) -> Ground:
    return Ground(FOR, "weak", "the first failure", True, why, where=(case.table.span(failure.row),), observed=True)


def _at(case: Case, row: int, why: str) -> Ground:
    return Ground(FOR, "weak", "the record before the silence", True, why, where=(case.table.span(row),), observed=True)


_READERS = (
    _device_assert,
    _plain,
    _token_pool,
    _memory,
    _shared_memory,
    _leak,
    _exit_code,
    _lost_peer,
    _astray,
    _silent_rank,
    _request,
)
_SETTLED = (_token_pool, _memory, _shared_memory, _exit_code, _lost_peer, _silent_rank)


def _mib(number: str, unit: str) -> float:
    return float(number.rstrip(".") or 0) * (1024 if unit.startswith("G") else 1)
