"""Arithmetic that an expert does on the numbers of a message. Pure functions; every one says what it found in words.

Sources: sglang's own messages (leak check of the scheduler, `Decode out of memory`, the balance check before loading),
torch's out-of-memory text and process-group watchdog, POSIX exit codes.
"""

from __future__ import annotations

import re
import signal

from forensics.frozen import frozen
from forensics.late import Late

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_UNITS = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "KB": 1e3, "MB": 1e6, "GB": 1e9}


@frozen
class Pool:
    """One pool of a leak report, in slots or tokens."""

    name: str
    available: int
    evictable: int
    protected: int
    size: int

    @property
    def difference(self) -> int:
        """Found minus size: 0 balances, negative is lost, positive is freed twice."""
        return self.available + self.evictable + self.protected - self.size


_FIELD = Late(
    r"(?:self\.)?((?:[\w.]{0,60}?)(?:available|evictable|protected|total|size|max_total_num_tokens|tokens_per_layer)(?:_size|_num)?)"
    r"(?:\(\))?\s*=\s*(\d+)"
)
_SIMPLE = Late(r"^\[(\w+)\] total=(\d+), available=(\d+), evictable=(\d+), protected=(\d+)", re.MULTILINE)


def pools(message: str) -> tuple[Pool, ...]:
    """Pools of a `memory leak detected!` message or of a `[full] total=…` line, in order of appearance."""
    simple = [Pool(m[1], int(m[3]), int(m[4]), int(m[5]), int(m[2])) for m in _SIMPLE.finditer(message)]
    if simple:
        return tuple(simple)
    found: dict[str, dict[str, int]] = {}
    for match in _FIELD.finditer(message[:8000]):
        name, value = match.group(1), int(match.group(2))
        role = next((w for w in ("available", "evictable", "protected") if w in name), "size")
        pool = _pool_name(name)
        # `size` fields name the allocator (`token_to_kv_pool_allocator.size`): they close the pool that is open.
        if role == "size" and pool not in found and found:
            pool = next((p for p in reversed(found) if "size" not in found[p] and _akin(p, pool)), pool)
        found.setdefault(pool, {})[role] = value
    return tuple(
        Pool(name, v["available"], v.get("evictable", 0), v.get("protected", 0), v["size"])
        for name, v in found.items()
        if "available" in v and "size" in v
    )


def _pool_name(field: str) -> str:
    for word in ("mamba", "swa", "full"):
        if word in field:
            return word
    return (
        "full"
        if "token_to_kv" in field or "max_total" in field or "available" in field or "evictable" in field
        else field
    )


def _akin(a: str, b: str) -> bool:
    return a == b or "full" in (a, b)


def leak_reading(pool: Pool) -> str:
    """What the sum says: equal, lost, or freed twice."""
    total = pool.available + pool.evictable + pool.protected
    sum_text = f"{pool.name}: {pool.available} + {pool.evictable} + {pool.protected} = {total}"
    if pool.difference == 0:
        return f"{sum_text}, the size: this pool balances, even if the message names it"
    if pool.difference < 0:
        return f"{sum_text} of {pool.size}: {-pool.difference} lost"
    return f"{sum_text} > {pool.size}: {pool.difference} freed twice"


def allocation_reading(
    requested: int, available: int, page_size: int | None = None, requests: int | None = None
) -> str:
    """Whether an allocation failed because the pool is full, or for another reason. Units: tokens."""
    if available < requested:
        return f"{requested} requested, {available} available: the pool is full"
    text = f"{requested} requested, {available} available: not a full pool, pages or another pool"
    if page_size and requests and available // page_size < requests:
        text += f"; {available} // {page_size} = {available // page_size} free pages for {requests} requests"
    return text


def exit_reading(code: int) -> str:
    """What an exit code says. Negative: died by that signal; 128 + n: the shell's form of it."""
    number = -code if code < 0 else code - 128 if 128 < code <= 128 + 64 else 0
    if code == 255 or number <= 0:
        return (
            "exited normally" if code == 0 else f"exit code {code}: it raised, or ended itself; its exception is above"
        )
    names = {
        9: "SIGKILL: an OOM killer, or the tree kill after a failure; the order decides",
        11: "SIGSEGV: read its native stack",
        6: "SIGABRT: a C++ assertion or the process-group watchdog",
        7: "SIGBUS: shared memory",
        15: "SIGTERM: an orchestrator",
    }
    try:
        plain = signal.Signals(number).name
    except ValueError:
        plain = f"signal {number}"
    return f"exit code {code}: died by {names.get(number, plain)}"


_EXIT_ANY = Late(r"(?i)(?:exit ?code|exited with(?: code| status)?|terminated with)[:=]? ?(-?\d+)\b")
_WAIT_STATUS = Late(r"^Child process unexpectedly failed with (?:exitcode=|an exit code )(\d+)")


def exit_code_in(text: str) -> int | None:
    """The exit code that a message states, negative for a signal. sglang up to 0.4 prints the raw status of waitpid in
    `Child process unexpectedly failed`: the signal is in its low seven bits, else the code in the byte above."""
    status = _WAIT_STATUS.search(text)
    if status is not None and len(status[1]) < 7:
        number = int(status[1])
        return -(number & 0x7F) if number & 0x7F else number >> 8
    found = _EXIT_ANY.search(text)
    return int(found[1]) if found is not None and len(found[1]) < 7 else None


def balance_reading(lowest: float, local: float) -> str:
    """The check before loading: the lowest free memory of all ranks against 0.9 of this rank's (GB)."""
    if lowest >= local * 0.9:
        return f"lowest {lowest:.2f} GB against {local:.2f} GB x 0.9: balanced"
    kind = "after a target model (draft worker)" if local < 24 else "a foreign process holds the difference"
    return f"lowest {lowest:.2f} GB < {local:.2f} GB x 0.9 = {local * 0.9:.2f} GB: another rank has less; {kind}"


def watchdog_start(time: float, milliseconds: float) -> float:
    """Start of the wait (seconds since the epoch) of a watchdog line: look what the missing rank did then."""
    return time - milliseconds / 1000.0


def oom_reading(tried: float, free: float) -> str:
    """CUDA out of memory: bytes tried against bytes free."""
    if tried > free:
        return f"{tried / 2**30:.2f} GiB tried, {free / 2**30:.2f} GiB free: no fragmentation, it does not fit"
    return f"{tried / 2**30:.2f} GiB tried, {free / 2**30:.2f} GiB free: fragmentation, or another process took it"


def divides(width: int, parts: int, block: int) -> bool:
    """Whether a weight's width splits over `parts` ranks into whole quantization blocks."""
    return parts > 0 and block > 0 and width % parts == 0 and (width // parts) % block == 0


def size_of(number: str, unit: str) -> float:
    """A size in bytes."""
    return float(number) * _UNITS.get(unit, 1.0)


_OOM = Late(
    rf"Tried to allocate {_NUMBER} ([KMG]iB|[KMG]B|B)\b.{{0,400}}?of which {_NUMBER} ([KMG]iB|[KMG]B|B) is free",
    re.DOTALL,
)
_ALLOC = Late(r"Try to allocate (\d+) tokens\.?\s*(?:Avaliable|Available) tokens: (\d+)")
_WINDOW = Late(r"Try to allocate (\d+) tokens.{0,300}?Available swa tokens: (\d+)", re.DOTALL)
_EXIT = Late(r"exit code:? -?\d+|^Exit code: -?\d+|^Child process unexpectedly failed")
_BALANCE = Late(rf"(?:min_per_gpu_memory|pre_model_load_memory)={_NUMBER}, local_gpu_memory={_NUMBER}")
_WATCH = Late(r"SeqNum=(\d{1,20}), OpType=(\w{1,40}), NumelIn=(\d{1,20}).{0,300}?ran for (\d+) milliseconds")
_BLOCK_DIV = Late(r"= (\d+) is not divisible by weight quantization block_[nk] = (\d+)")


def readings(text: str, page_size: int | None = None) -> tuple[str, ...]:
    """All that the numbers of a message say, in words."""
    found: list[str] = []
    if "memory leak detected" in text or "leak" in text[:200]:
        found += [leak_reading(p) for p in pools(text)]
    if m := _OOM.search(text):
        found.append(oom_reading(size_of(m[1], m[2]), size_of(m[3], m[4])))
    if m := _ALLOC.search(text):
        found.append(allocation_reading(int(m[1]), int(m[2]), page_size))
    if (m := _WINDOW.search(text)) and int(m[2]) < int(m[1]):
        found.append(f"{m[1]} requested, {m[2]} available in the sliding-window pool: that pool is full")
    if _EXIT.search(text) and (code := exit_code_in(text)) is not None:
        found.append(exit_reading(code))
    if m := _BALANCE.search(text):
        found.append(balance_reading(float(m[1]), float(m[2])))
    if m := _WATCH.search(text):
        found.append(_watch_reading(int(m[1]), m[2], int(m[3]), int(m[4])))
    if m := _BLOCK_DIV.search(text):
        found.append(
            f"{m[1]} = {int(m[1]) // int(m[2])} x {m[2]} + {int(m[1]) % int(m[2])}: the split width is no whole blocks"
        )
    return tuple(found)


def _watch_reading(sequence: int, kind: str, elements: int, milliseconds: int) -> str:
    when = f"the wait began {milliseconds / 1000:.0f} s before the line"
    if sequence <= 3 and elements <= 1:
        return (
            f"SeqNum {sequence}, {elements} element: the first collective after loading; a node is late or dead; {when}"
        )
    if sequence >= 10_000:
        return f"SeqNum {sequence}, {kind} of {elements} elements: a divergence or device fault while serving; {when}"
    return f"SeqNum {sequence}, {kind} of {elements} elements; {when}"
