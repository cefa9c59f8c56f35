"""`forensics fleet`: many incidents at once, and the report on all of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

if TYPE_CHECKING:
    from forensics.fleet.objects import Storage
    from forensics.fleet.run import Result


class RunByDefault(typer.core.TyperGroup):
    """`forensics fleet LOGS…` is `forensics fleet run LOGS…`: what is no sub-command is a log."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args and args[0] in self.commands else ["run", *args])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = not args or args[0] in self.commands or args[0] in ("--help", "-h")
        return super().parse_args(ctx, args if own else ["run", *args])


app = typer.Typer(
    cls=RunByDefault,
    no_args_is_help=True,
    add_completion=False,
    help="Many incidents at once. `forensics fleet LOGS…` is short for `forensics fleet run LOGS…`.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

RUN_EXAMPLES = r"""Examples:
  forensics fleet /var/log/sglang -o today
  forensics fleet 's3://logs/2026-03-05/**/*.log.zst' -o today --engine ray --ray-address auto
  forensics fleet logs/ --group-by 'job-(\d+)' --node-by 'host-\w+'
  forensics fleet report today

Interrupted at any place, the same command goes on where it was.

Exit code: 0 every incident was analyzed (whatever it shows), 1 some could not be, 2 bad usage or nothing usable."""


@app.command(epilog=RUN_EXAMPLES)
def run(
    logs: Annotated[list[str], typer.Argument(help="Folders, files, globs or URLs (s3://, gs://, https://).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The dataset's folder.")] = Path("fleet"),
    engine: Annotated[str, typer.Option(help="local (processes) or ray.")] = "local",
    workers: Annotated[int, typer.Option("--workers", "-j", min=0, help="Incidents at once (0: one per core).")] = 0,
    ray_address: Annotated[str, typer.Option(help="Ray cluster to use, such as auto or head:6379.")] = "",
    group_by: Annotated[str, typer.Option(help="RE2 pattern: logs with the same capture are one incident.")] = "",
    node_by: Annotated[str, typer.Option(help="RE2 pattern that takes the machine out of a log's name.")] = "",
    service_by: Annotated[str, typer.Option(help="RE2 pattern that takes the service out of a log's name.")] = "",
    split_above: Annotated[str, typer.Option(help="From this size on, one incident is read by byte ranges.")] = "2GB",
    storage: Annotated[Path | None, typer.Option(help="JSON file of fsspec options per protocol.")] = None,
    stall: Annotated[float, typer.Option(min=1, help="Seconds without a byte after which a read is given up.")] = 60.0,
    spool: Annotated[str, typer.Option("--spool-bytes", help="Local disk that one incident may take.")] = "64GB",
    scratch: Annotated[Path | None, typer.Option(help="Folder of the spool (default: the system's own).")] = None,
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A forensics.toml.")] = None,
    wrapper: Annotated[str | None, typer.Option(help="Force a wrapper.")] = None,
    no_mask: Annotated[bool, typer.Option("--no-mask", help="Keep secrets as they stand in the logs.")] = False,
    no_parquet: Annotated[bool, typer.Option("--no-parquet", help="The SQLite summary alone (no pyarrow).")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the incidents, analyze nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> int:
    """Analyze every incident among many logs into one dataset."""
    from forensics.cli.times import parse_size
    from forensics.engine.forked import cores
    from forensics.fleet.engine import choose
    from forensics.fleet.plan import Settings
    from forensics.fleet.remote import Limits
    from forensics.fleet.run import plan
    from forensics.fleet.run import run as run_fleet
    from forensics.schema.options import Options

    options = Options(kb=tuple(kb or ()), rules=tuple(rules or ()), config=config, wrapper=wrapper, mask=not no_mask)
    settings = Settings(
        options=options,
        node_by=node_by,
        service_by=service_by,
        split_above=parse_size(split_above),
        split=max(2, cores()),
        limits=Limits(stall, parse_size(spool)),
        storage=_storage(storage),
        scratch=str(scratch.absolute()) if scratch else "",
    )
    planned = plan(logs, settings, group_by)
    if dry_run:
        return _list(planned.incidents)
    worker = choose(engine, workers, ray_address)
    try:
        result = run_fleet(planned, output, worker, not no_parquet, quiet)
    except KeyboardInterrupt:
        typer.echo("interrupted: the same command goes on where it was", err=True)
        return 130
    finally:
        worker.close()
    return _tell(result, output)


def _storage(path: Path | None) -> Storage:
    """Options per protocol. They may hold keys: only a file can state them, and no dataset repeats them."""
    import json

    from forensics.errors import InputError

    if path is None:
        return {}
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error})") from None
    if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
        raise InputError(f"{path}: must hold one object per protocol", hint='{"s3": {"endpoint_url": "https://…"}}')
    return found


def _list(incidents: Any) -> int:
    from forensics.output.clean import clean

    for incident in incidents:
        typer.echo(f"{incident.id}  {incident.size} bytes  " + clean(" ".join(o.name for o in incident.objects)))
    return 0


def _tell(result: Result, output: Path) -> int:
    plural = "" if result.incidents == 1 else "s"
    typer.echo(
        f"{result.incidents} incident{plural}: {result.failed} show a failure, {result.bad} could not be analyzed"
    )
    if result.skipped:
        typer.echo(f"{result.skipped} were finished by an earlier run")
    if result.spread:
        typer.echo(f"{result.spread} {'was' if result.spread == 1 else 'were'} read on several nodes at once")
    if result.problems:
        typer.echo(f"{result.problems} problems are listed in the dataset")
    typer.echo(f"next: forensics fleet report {output}")
    sys.stdout.flush()
    return 1 if result.bad else 0


REPORT_EXAMPLES = """Examples:
  forensics fleet report today
  forensics fleet report today --format html -o today.html
  forensics fleet report today --drafts kb-drafts

Exit code: 0, or 2 where there is no finished dataset."""


@app.command(epilog=REPORT_EXAMPLES)
def report(
    dataset: Annotated[Path, typer.Argument(help="Folder that forensics fleet wrote.")],
    format: Annotated[str, typer.Option("--format", "-f", help="text, html or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All rows of every table.")] = False,
    drafts: Annotated[
        Path | None, typer.Option(help="Write drafts of findings for the unexplained failures into this folder.")
    ] = None,
    width: Annotated[int, typer.Option(min=0, help="Columns of the text (0: the terminal's).")] = 0,
) -> int:
    """Causes over time, unexplained clusters, regressions, suspect nodes, and findings that never match."""
    import os
    import shutil

    from forensics.fleet.show import render
    from forensics.fleet.summary import summarize
    from forensics.output.atomic import write_atomic

    found = summarize(dataset)
    terminal = output is None and sys.stdout.isatty()
    columns = width or (shutil.get_terminal_size().columns if terminal else 110)
    shown = render(found, format, max(60, columns), terminal and not os.environ.get("NO_COLOR"), everything)
    if output is not None:
        write_atomic(output, shown)
    else:
        typer.echo(shown, nl=False)
    if drafts is not None:
        from forensics.fleet.drafts import write_drafts

        for path in write_drafts(dataset, found.clusters, drafts):
            typer.echo(str(path), err=True)
    return 0
