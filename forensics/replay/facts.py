"""What the server's own Python says about the host: asked through torch and sglang, never guessed here."""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any

from forensics.frozen import frozen
from forensics.grammar.command import Command, Word
from forensics.replay.base import Base
from forensics.replay.container import asking_words, container_client
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
_ENTERING = frozenset(
    {
        "srun", "uv", "conda", "mamba", "micromamba", "poetry", "pipenv", "pixi", "apptainer", "singularity", "enroot",
        "sudo", "ssh", "chroot",
    }
)  # fmt: skip
"""Programs that run their words somewhere else, or with another Python."""


@frozen
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


def server_python(base: Base, *arguments: str) -> list[str]:
    """The words that run a short program under the server's own Python: in the user's prepared shell where there is
    one, in a container of the same image where a client starts the server, else with the server's variables."""
    command = base.command()
    program = command.words[command.program]
    client = container_client(command)
    before = _before(command) if client is None else _inside(command, client)
    raw = [w if isinstance(w, str) else command.text[w.start : w.end] for w in before]
    plain = [w if isinstance(w, str) else w.value for w in before]
    python = _python(program.value)
    if not base.shell:
        return [*plain, python, *arguments]
    own = command.text[program.start : program.end] if python == program.value else python
    asking = base.script.asking if base.script else ""
    return ["bash", "-c", f'{asking}{" ".join([*raw, own])} "$@"', "forensics", *arguments]


def _inside(command: Command, client: int) -> list[Word | str]:
    """The container client's words; a container that is run for one question is gone afterwards."""
    chosen = asking_words(command, client)
    at = next((n for n, w in enumerate(chosen) if w.value == "run"), None)
    if at is None or "--rm" in [w.value for w in chosen]:
        return list(chosen)
    return [*chosen[: at + 1], "--rm", *chosen[at + 1 :]]


def _before(command: Command) -> list[Word | str]:
    """The server's variables, and the words that lead into its environment (`srun …`, `uv run`)."""
    assigned = [command.words[a.word] for a in command.env]
    enters = next((n for n in range(command.program) if command.words[n].value.rpartition("/")[2] in _ENTERING), None)
    entering = command.words[enters : command.program] if enters is not None else ()
    return [*(["env"] if assigned else []), *assigned, *(w for w in entering if w not in assigned)]


def _python(program: str) -> str:
    """The Python of the word that starts the server: itself, or the one beside `sglang`."""
    folder, slash, name = program.rpartition("/")
    return program if "python" in name else f"{folder}{slash}python" if slash else "python3"


def ask_facts(host: Host, base: Base, cwd: str | None = None, timeout: float = 300.0) -> HostFacts:
    """Run SCRIPT under the server's Python on `host`."""
    reply = host.ask("ask", argv=server_python(base, "-c", SCRIPT), cwd=cwd, timeout=timeout)
    for line in reversed(reply["out"].splitlines()):
        if line.startswith(_MARK):
            return HostFacts(json.loads(line[len(_MARK) :]))
    last = (reply["err"].strip().splitlines() or ["no output"])[-1]
    return HostFacts(why=f"the server's Python ended with code {reply['code']}: {last[:300]}")
