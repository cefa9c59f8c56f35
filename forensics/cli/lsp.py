"""`forensics lsp`: language server for findings, rules and logs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from forensics.errors import UsageError

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics lsp
  forensics lsp --kb our-kb

An editor starts it; docs/editors.md shows the set-up of VS Code, Neovim, Emacs and Helix."""


@app.command(epilog=EXAMPLES)
def lsp(
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A forensics.toml.")] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Accepted for editors that pass it; always on.")] = True,
) -> None:
    """Serve diagnostics, completion, hover, definitions, references, fixes and formatting over standard input."""
    if importlib.util.find_spec("pygls") is None:
        raise UsageError("the language server library is not installed", hint="pip install 'sglang-forensics[lsp]'")
    from forensics.editor.server import build
    from forensics.schema.options import Options

    build(Options(kb=tuple(kb or ()), rules=tuple(rules or ()), config=config)).start_io()
