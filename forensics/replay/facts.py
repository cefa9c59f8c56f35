"""What the server's own Python says about the host: asked through torch and sglang, never guessed here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from forensics.replay.base import Base
from forensics.replay.edits import container_client
from forensics.replay.host import Host

# Runs under the server's interpreter. Prints one JSON object as its last line; every part may fail by itself.
SCRIPT = r"""
import json, sys
found = {"python": sys.version.split()[0], "errors": {}, "gpus": [], "flags": {}}
def part(name, call):
    try:
        return call()
    except BaseException as error:
        found["errors"][name] = "%s: %s" % (type(error).__name__, str(error)[:300])
def versions():
    import importlib.metadata as m
    for name in ("sglang", "torch", "transformers", "triton", "sgl-kernel", "sglang-kernel", "flashinfer-python"):
        try:
            found[name] = m.version(name)
        except Exception:
            pass
def gpus():
    import torch
    found["cuda"] = torch.version.cuda
    found["arch_list"] = torch.cuda.get_arch_list() if torch.cuda.is_available() else []
    try:
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else None
    except Exception:
        pass
    for i in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(i)
        free, total = torch.cuda.mem_get_info(i)
        found["gpus"].append({"name": p.name, "capability": "%d.%d" % (p.major, p.minor), "free": free, "total": total,
            "smem_per_block": getattr(p, "shared_memory_per_block_optin", None)})
def flags():
    import argparse
    from sglang.srt.server_args import ServerArgs
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    for action in parser._actions:
        for option in action.option_strings:
            found["flags"][option] = [str(c) for c in action.choices] if action.choices else None
part("versions", versions)
part("gpus", gpus)
part("flags", flags)
print("\n@forensics " + json.dumps(found))
"""
_MARK = "@forensics "


@dataclass(frozen=True, slots=True)
class HostFacts:
    """`data` is the script's answer (empty when it could not be asked; `why` then says so)."""

    data: dict[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def sglang(self) -> str | None:
        return self.data.get("sglang")

    @property
    def gpus(self) -> list[dict[str, Any]]:
        return list(self.data.get("gpus", []))

    @property
    def flags(self) -> dict[str, list[str] | None]:
        return dict(self.data.get("flags", {}))

    def error(self, part: str) -> str:
        """Why a part could not be asked; empty where it could."""
        return str(self.data.get("errors", {}).get(part, ""))


def python_words(base: Base) -> tuple[list[str], dict[str, str]]:
    """(words that start the server's Python, variables set for it). In a container: the client's words before it."""
    command = base.command()
    words = [word.value for word in command.words]
    client = container_client(command)
    env = {a.name: a.value for a in command.env if a.by != "container"}
    program = words[command.program]
    python = program if "python" in program.rpartition("/")[2] else "python3"
    if client is not None:
        return [*words[client : command.program], python], env
    if program.endswith("/sglang"):
        python = program.rpartition("/")[0] + "/python"
    return [python], env


def ask_facts(host: Host, base: Base, cwd: str | None = None, timeout: float = 300.0) -> HostFacts:
    """Run SCRIPT under the server's Python on `host`."""
    words, env = python_words(base)
    reply = host.ask("ask", argv=[*words, "-"], input=SCRIPT, env=env, cwd=cwd, timeout=timeout)
    for line in reversed(reply["out"].splitlines()):
        if line.startswith(_MARK):
            return HostFacts(json.loads(line[len(_MARK) :]))
    last = (reply["err"].strip().splitlines() or ["no output"])[-1]
    return HostFacts(why=f"{' '.join(words[-1:])} ended with code {reply['code']}: {last[:300]}")
