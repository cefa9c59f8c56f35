"""Asking the host: commands with a time limit and bounded output; nothing here raises."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from forensics.frozen import frozen

MAX_OUTPUT = 4 << 20


@frozen
class Part:
    """One file of the bundle. `problem` says why it is missing or incomplete; `how` is the command or the place."""

    name: str
    text: str
    how: str
    problem: str = ""


def ask(name: str, command: Sequence[str], seconds: float = 30.0) -> Part:
    """The output of one command as a part."""
    how = " ".join(command)
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        return Part(name, "", how, f"{command[0]} is not installed")
    except subprocess.TimeoutExpired as late:
        return Part(name, _text(late.stdout), how, f"no answer within {seconds:.0f} s")
    except OSError as error:
        return Part(name, "", how, error.strerror or "cannot be run")
    problem = ""
    if done.returncode:
        last = _text(done.stderr).strip().splitlines()[-1:] or ["no message"]
        problem = f"exit code {done.returncode}: {last[0][:300]}"
    return Part(name, _text(done.stdout), how, problem)


def join(name: str, parts: Sequence[Part]) -> Part:
    """Several answers as one file, each under its command."""
    text = "".join(f"$ {p.how}\n{p.text}\n" for p in parts if p.text)
    problems = [f"{p.how}: {p.problem}" for p in parts if p.problem]
    return Part(name, text, "; ".join(p.how for p in parts), "; ".join(problems))


def _text(data: bytes | str | None) -> str:
    if data is None:
        return ""
    text = data if isinstance(data, str) else data[:MAX_OUTPUT].decode("utf-8", "replace")
    return text if not text or text.endswith("\n") else text + "\n"
