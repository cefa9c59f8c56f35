"""`forensics mcp`: tools for coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics mcp --root ~/incidents
  forensics mcp --root . --kb our-kb

An agent starts it; docs/agents.md shows the configuration of common ones."""


@app.command(epilog=EXAMPLES)
def mcp(
    root: Annotated[Path, typer.Option(help="Folder with the logs: nothing outside it is read.")] = Path(),
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A forensics.toml.")] = None,
) -> None:
    """Serve analyze, explain, search_kb, compare, propose_experiment, draft_finding and replay_plan over stdio."""
    from forensics.agents.jail import Jail
    from forensics.agents.server import serve
    from forensics.agents.tools import Toolbox

    serve(Toolbox(Jail(root), tuple(kb or ()), tuple(rules or ()), config))
