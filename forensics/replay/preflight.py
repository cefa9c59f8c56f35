"""What must hold before a server is started, each with a clear refusal."""

from __future__ import annotations

import posixpath

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import Command
from forensics.replay.container import container_client
from forensics.replay.edits import main_spelling
from forensics.replay.facts import HostFacts
from forensics.replay.host import Host
from forensics.replay.plan import Plan
from forensics.schema.report import LaunchInfo

_DISK_BYTES = 1 << 30
_OWN_PYTHON = "name the server's own Python with --python, or in --launch"


@frozen
class Finding:
    """One result of preflight. `refuse`: the run must not start (unless `--force` and `forcible`)."""

    name: str
    ok: bool
    text: str
    hint: str = ""
    forcible: bool = True

    def line(self) -> str:
        mark = "ok" if self.ok else "refused"
        return f"{mark}: {self.name}: {self.text}" + (f" ({self.hint})" if self.hint and not self.ok else "")


def nodes_of(command: Command) -> int:
    """Number of nodes that the command names."""
    flag = next((f for f in command.flags if main_spelling(f.name) == "--nnodes"), None)
    return int(flag.value) if flag and flag.value and flag.value.isdigit() else 1


def preflight(host: Host, plan: Plan, facts: HostFacts, launch: LaunchInfo | None, folder: str) -> list[Finding]:
    """All checks, in the order in which they matter; nothing is started. `folder`: where logs will go on that host."""
    command = plan.reads()
    found = [_sglang(facts, launch), *_ours(host, command)]
    found += _flags(plan, facts)
    found += _gpus(facts, command, launch)
    found.append(_port(host, plan))
    if container_client(command) is None:
        found.append(_model(host, command, plan.base.script.cwd if plan.base.script else ""))
    found.append(_disk(host, folder))
    return found


def refuse(findings: list[Finding], force: bool) -> None:
    """Raise ReplayError with every refusal that stands."""
    bad = [f for f in findings if not f.ok and not (force and f.forcible)]
    if bad:
        lines = "\n".join(f"  {f.name}: {f.text}" + (f" ({f.hint})" if f.hint else "") for f in bad)
        raise ReplayError(
            f"preflight refuses this launch:\n{lines}", hint="mend these, or use --force where you know better"
        )


def _sglang(facts: HostFacts, launch: LaunchInfo | None) -> Finding:
    if not facts.data:
        return Finding("sglang", False, facts.why, _OWN_PYTHON, forcible=False)
    if facts.sglang is None:
        why = facts.error("flags") or "it is not installed for that Python"
        return Finding("sglang", False, why, _OWN_PYTHON, forcible=False)
    stated = launch.version.exact if launch else None
    same = "" if stated in (None, facts.sglang) else f"; the log is of {stated}"
    return Finding("sglang", True, f"{facts.sglang}{same}")


def _ours(host: Host, command: Command) -> list[Finding]:
    """Another replay's server on this host: two would share the GPUs."""
    pids = host.ask("ours")["pids"] if not _on_cpu(command) else []
    if not pids:
        return []
    text = f"a server of another replay runs here (process {', '.join(map(str, pids[:5]))})"
    return [Finding("other servers", False, text, "wait for it, or end it with forensics replay --cleanup")]


def _flags(plan: Plan, facts: HostFacts) -> list[Finding]:
    if not facts.flags:
        return [Finding("flags", False, facts.error("flags") or "its argument parser could not be asked")]
    out = []
    for change in plan.changes:
        if change.kind != "flag" or change.op != "set":
            continue
        if change.name not in facts.flags:
            near = sorted(n for n in facts.flags if n.startswith(change.name[:8]))[:3]
            hint = f"it has {', '.join(near)}" if near else ""
            out.append(Finding("flag", False, f"sglang {facts.sglang} has no {change.name}", hint))
            continue
        choices = facts.flags[change.name]
        if choices and change.value is not None and change.value not in choices:
            text = f"{change.name} does not take {change.value!r}"
            out.append(Finding("flag", False, text, f"it takes {', '.join(choices[:20])}"))
    return out or [Finding("flags", True, f"known to sglang {facts.sglang}")]


def _gpus(facts: HostFacts, command: Command, launch: LaunchInfo | None) -> list[Finding]:
    if _on_cpu(command):
        return [Finding("GPUs", True, "not needed (--device cpu)")]
    gpus = facts.gpus
    need = _ranks(command)
    if len(gpus) < need:
        why = facts.error("gpus") or f"{len(gpus)} visible"
        return [Finding("GPUs", False, f"{need} needed, {why}", "check nvidia-smi and CUDA_VISIBLE_DEVICES")]
    out = [Finding("GPUs", True, f"{len(gpus)} × {gpus[0]['name']} (sm_{gpus[0]['capability'].replace('.', '')})")]
    busy = [i for i, g in enumerate(gpus[:need]) if g["free"] < 0.9 * g["total"]]
    if busy:
        free = min(gpus[i]["free"] for i in busy) / 2**30
        text = f"GPU {', '.join(map(str, busy))} not free (least free: {free:.1f} GiB)"
        out.append(Finding("GPU memory", False, text, "another process holds it: see nvidia-smi"))
    wanted = launch.facts.get("gpu.capability") if launch else None
    if wanted is not None and str(wanted.value) != gpus[0]["capability"]:
        text = f"the log is of compute capability {wanted.value}, this host has {gpus[0]['capability']}"
        out.append(Finding("architecture", False, text, "what is proved here may not hold there"))
    return out


def _on_cpu(command: Command) -> bool:
    return next((f.value for f in reversed(command.flags) if f.name == "--device"), None) == "cpu"


def _ranks(command: Command) -> int:
    size = 1
    for name in ("--tp-size", "--pp-size"):
        flag = next((f for f in reversed(command.flags) if main_spelling(f.name) == name), None)
        size *= int(flag.value) if flag and flag.value and flag.value.isdigit() else 1
    dp = next((f for f in reversed(command.flags) if main_spelling(f.name) == "--dp-size"), None)
    attention = any(f.name == "--enable-dp-attention" for f in command.flags)
    if dp and dp.value and dp.value.isdigit() and not attention:
        size *= int(dp.value)
    return -(-size // nodes_of(command))


def _port(host: Host, plan: Plan) -> Finding:
    stated = next((f.value for f in reversed(plan.reads().flags) if main_spelling(f.name) == "--port"), None)
    if stated is not None and not stated.isdigit():
        return Finding("port", False, f"{stated} is not known here", "write the number", forcible=False)
    name, port = plan.fixed.address()
    if port is None:
        hint = "publish it with -p PORT:PORT, or use --network host"
        return Finding("port", False, "the container publishes the server's port nowhere", hint, forcible=False)
    reply = host.ask("port", host=name, port=port)
    if reply["free"]:
        return Finding("port", True, f"{port} is free")
    hint = "stop what listens there, or change the port with --fix 'set --port=…'"
    return Finding("port", False, f"{port} on {name} is taken: {reply['why']}", hint, forcible=False)


def _model(host: Host, command: Command, cwd: str | None) -> Finding:
    flag = next((f for f in reversed(command.flags) if main_spelling(f.name) == "--model-path"), None)
    path = flag.value if flag else None
    if not path:
        return Finding("model", True, "named by the command in another way")
    if not path.startswith(("/", "./", "../", "~", "$")):
        return Finding("model", True, f"{path} is a hub name, not checked")
    if cwd is None and not path.startswith(("/", "~", "$")):
        return Finding("model", True, f"{path} is relative to a folder that is not known here, not checked")
    if host.ask("exists", path=posixpath.join(cwd or "", path))["exists"]:
        return Finding("model", True, f"{path} is there")
    return Finding(
        "model", False, f"{path} is not on this host", "mount it, or give the path in --launch", forcible=False
    )


def _disk(host: Host, folder: str) -> Finding:
    free = int(host.ask("free", path=folder)["bytes"])
    if free >= _DISK_BYTES:
        return Finding("disk", True, f"{free / 2**30:.0f} GiB free for logs")
    return Finding(
        "disk", False, f"{free / 2**20:.0f} MiB free for logs in {folder}", "free some space", forcible=False
    )
