"""The fleet's report as text, HTML or JSON. Every text came out of a log: it is made inert before it is shown."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from base64 import b64encode
from html import escape
from importlib import resources
from io import StringIO
from typing import Any

from forensics.errors import UsageError
from forensics.fleet.sections import Cell, Section, headline, sections
from forensics.fleet.summary import Summary
from forensics.output.clean import clean

FORMATS = ("text", "html", "json")
ROWS = 12
"""Rows of each table at a terminal."""
_FIXED = 52
"""Columns of the table of causes that are not about time."""
_PERIOD = 9
"""Columns of one period."""
_PAGE_ROWS = 500
_CELL = 300
_WORDS = 12
"""Characters from which on a cell of the page is text that needs some width."""


def render(found: Summary, format: str, width: int = 100, color: bool = False, everything: bool = False) -> str:
    """The report. UsageError where there is no such format."""
    if format == "text":
        return text(found, width, color, everything)
    if format == "html":
        return page(found)
    if format == "json":
        return as_json(found)
    raise UsageError(f"--format {format}: there is no such format", hint=f"one of: {', '.join(FORMATS)}")


def as_json(found: Summary) -> str:
    """All of it, nothing cut."""
    data = {"schema": "1", "headline": headline(found), **dataclasses.asdict(found)}
    data["causes"] = [{**c, "over_time": dict(zip(found.periods, c["over_time"], strict=True))} for c in data["causes"]]
    return json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def text(found: Summary, width: int, color: bool, everything: bool) -> str:
    """Tables for a terminal; `everything` shows all rows."""
    from rich.console import Console

    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="standard" if color else None,
        highlight=False, emoji=False, markup=False, legacy_windows=False,
    )  # fmt: skip
    console.print(_line(headline(found)), style="bold")
    periods = max(2, (width - _FIXED) // _PERIOD)
    shown = sections(found, periods=periods) if everything else sections(found, ROWS, periods)
    for section in shown:
        if section.id == "problems" and not section.rows:
            continue
        console.print()
        console.print(_line(section.title), style="bold")
        if section.note and section.rows:
            console.print(_line(section.note), style="dim")
        console.print(_table(section) if section.rows else f"  {_line(section.empty)}")
        for row in section.rows if section.below else ():
            place = _line(str(row[section.head.index(section.below)]))
            console.print(f"  {row[0]!s:>9}  {place}", style="dim", soft_wrap=True)
        if section.more:
            console.print(f"  and {section.more} more (--all)", style="dim")
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _table(section: Section) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("")
    shown = [i for i, name in enumerate(section.head) if name not in (*section.wordy, section.below)]
    for i in shown:
        figures = all(isinstance(row[i], int) for row in section.rows)
        table.add_column(
            _line(section.head[i]), justify="right" if figures else "left", overflow="fold", no_wrap=figures
        )
    for row in section.rows:
        table.add_row("", *(_cell(row[i], 120, bool(section.heat) and i >= section.heat) for i in shown))
    return table


def _cell(cell: Cell, limit: int = _CELL, heat: bool = False) -> str:
    return "·" if heat and cell == 0 else clean(str(cell), limit)


def _line(value: str) -> str:
    return clean(value, 400)


_STYLE = """
.scroll .num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; min-width: 0; }
.scroll td, .scroll th { white-space: nowrap; }
.scroll .words { min-width: 13rem; overflow-wrap: break-word; white-space: normal; }
.h1 { background: color-mix(in srgb, var(--bad) 10%, transparent); }
.h2 { background: color-mix(in srgb, var(--bad) 22%, transparent); }
.h3 { background: color-mix(in srgb, var(--bad) 38%, transparent); }
.h4 { background: color-mix(in srgb, var(--bad) 50%, transparent); }
"""


def page(found: Summary) -> str:
    """One static page: no script, no network; a content policy admits its own style sheet and nothing else."""
    sheet = resources.files("forensics.output").joinpath("templates", "report.css").read_text("utf-8") + _STYLE
    sheet = "\n".join(line.rstrip() for line in sheet.split("\n") if line.strip())
    digest = b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    shown = sections(found, _PAGE_ROWS)
    title = _html(headline(found))
    links = "".join(f'<li><a href="#{s.id}">{_html(s.title)}</a></li>' for s in shown if s.rows)
    body = "\n".join(_section(s) for s in shown if s.rows or s.id != "problems")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_html(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{sheet}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
<p class="tool">forensics fleet, {_html(found.dataset)}</p>
<h1>{title}</h1>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main">
{body}
</main>
</body>
</html>
"""


def _section(section: Section) -> str:
    name = f"t-{section.id}"
    head = f'<section id="{section.id}" aria-labelledby="{name}"><h2 id="{name}">{_html(section.title)}</h2>'
    if not section.rows:
        return f'{head}<p class="dim">{_html(section.empty)}</p></section>'
    note = f'<p class="dim">{_with_code(section.note)}</p>' if section.note else ""
    figures = [isinstance(cell, int) for cell in section.rows[0]]
    kinds = [' class="num"' if figure else "" for figure in figures]
    names = "".join(f'<th scope="col"{kind}>{_html(name)}</th>' for name, kind in zip(section.head, kinds, strict=True))
    highest = max((c for row in section.rows for c in row[section.heat :] if isinstance(c, int)), default=0)
    rows = "\n".join(_row(row, section.heat, highest) for row in section.rows)
    more = f'<p class="dim">and {section.more} more</p>' if section.more else ""
    table = f"<table><thead><tr>{names}</tr></thead>\n<tbody>{rows}</tbody></table>"
    label = f'role="region" tabindex="0" aria-labelledby="{name}"'
    return f'{head}{note}<div class="scroll" {label}>{table}</div>{more}</section>'


def _row(row: tuple[Cell, ...], heat: int, highest: int) -> str:
    cells = []
    for number, cell in enumerate(row):
        warm = heat and number >= heat and isinstance(cell, int)
        level = -(-4 * int(cell) // max(highest, 1)) if warm else 0
        kind = "num" if isinstance(cell, int) else "words" if len(cell) > _WORDS else ""
        names = " ".join(filter(None, (kind, f"h{level}" if level else "")))
        tag, scope = ("th", ' scope="row"') if number == 0 else ("td", "")
        style = f' class="{names}"' if names else ""
        cells.append(f"<{tag}{scope}{style}>{_html(_cell(cell, _CELL, bool(warm)))}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def _with_code(note: str) -> str:
    """A note of ours: what stands in backticks as code."""
    parts = _html(note).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


def _html(value: str) -> str:
    return escape(clean(value, 2000), quote=True)
