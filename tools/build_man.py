"""Writes docs/forensics.1, the manual page, from the help texts of the commands.

python tools/build_man.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer.main

from forensics.cli.app import app
from forensics.version import VERSION

PAGE = Path(__file__).parent.parent / "docs" / "forensics.1"


def build() -> str:
    """The manual page as roff."""
    root = typer.main.get_command(app)
    lines = [
        '.\\" Made by tools/build_man.py from the help texts: do not edit.',
        f'.TH FORENSICS 1 "" "forensics {VERSION}" "User Commands"',
        ".SH NAME",
        "forensics \\- log forensics for sglang servers",
        ".SH SYNOPSIS",
        ".B forensics",
        '.RI [ options ] " command " [ arguments ]',
        ".SH DESCRIPTION",
        *_text(root.help or ""),
        ".PP",
        "Logs are named as files, folders, globs, compressed files, bundles or",
        ".B \\-",
        "for standard input.",
        ".SH OPTIONS",
        *_options(root),
        ".SH COMMANDS",
    ]
    examples: list[str] = []
    for path, command in _commands(root, "forensics"):
        lines += _command(path, command)
        examples += _examples(command)
    lines += [".SH EXAMPLES", ".nf", *(_escaped(e) for e in dict.fromkeys(examples)), ".fi"]
    lines += [
        ".SH EXIT STATUS",
        *_text(
            "analyze: 0 no failure (risks allowed), 1 a failure or a stated symptom, 2 nothing usable read or bad "
            "usage, 70 a bug. Other commands say theirs above. Ctrl\\-C ends any command with 130."
        ),
        ".SH FILES",
        *_text("forensics.toml in the current folder: further knowledge bases, disabled findings, secrets to mask."),
        ".SH ENVIRONMENT",
        *_text("NO_COLOR turns colours off."),
        ".SH SEE ALSO",
        ".BR journalctl (1),",
        ".BR nvidia\\-smi (1)",
    ]
    return "\n".join(lines) + "\n"


def _commands(group: Any, path: str) -> list[tuple[str, Any]]:
    """All commands below a group that do something, in the order of the help."""
    context = group.context_class(group, info_name=path.rpartition(" ")[2])
    found: list[tuple[str, Any]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            found += _commands(command, f"{path} {name}")
        else:
            found.append((f"{path} {name}", command))
    return found


def _command(path: str, command: Any) -> list[str]:
    words = [_name(p) for p in command.params if p.param_type_name == "argument"]
    return [
        f".SS {_escaped(path)} {' '.join(_escaped(w) for w in words)}".rstrip(),
        *_text(command.help or ""),
        *_options(command),
        *_exit_codes(command),
    ]


def _options(command: Any) -> list[str]:
    lines: list[str] = []
    for param in command.params:
        if getattr(param, "hidden", False):
            continue
        if param.param_type_name == "argument":
            head = f"\\fI{_escaped(_name(param))}\\fR"
        else:
            names = ", ".join(f"\\fB{_escaped(o)}\\fR" for o in sorted((*param.opts, *param.secondary_opts), key=len))
            value = "" if getattr(param, "is_flag", False) else f" \\fI{_escaped(_name(param))}\\fR"
            head = names + value
        lines += [".TP", head, _escaped((getattr(param, "help", "") or "").strip()) or "\\&"]
    return lines


def _name(param: Any) -> str:
    return str(param.metavar or param.name).upper().strip("[]")


def _examples(command: Any) -> list[str]:
    lines = (command.epilog or "").splitlines()
    return [
        line.strip().removeprefix("Example: ")
        for line in lines
        if " forensics " in f" {line} "[:80] and line[:2] in ("  ", "Ex")
    ]


def _exit_codes(command: Any) -> list[str]:
    text = f"{command.epilog or ''}\n"
    at = text.find("Exit code:")
    return [".PP", *_text(text[at:].split("\n\n")[0])] if at >= 0 else []


def _text(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        lines += [".PP"] if lines else []
        lines.append(_escaped(" ".join(paragraph.split())))
    return lines


def _escaped(text: str) -> str:
    """Text that roff prints as it stands."""
    text = text.replace("\\-", "-").replace("\\", "\\e").replace("-", "\\-").replace("`", "\\`").replace("'", "\\(aq")
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return f"\\&{text}" if text.startswith(".") else text


def main() -> int:
    text = build()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.is_file() or PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
