"""The report as one HTML file: no script, no network, nothing that a log could make run.

Every value goes through `clean` and the template's automatic escaping; a content policy that allows only this page's
own style sheet stands behind them.
"""

from __future__ import annotations

import hashlib
import importlib.util
from base64 import b64encode
from collections.abc import Callable
from importlib import resources
from typing import Any

from forensics.errors import UsageError
from forensics.output import html_view as view
from forensics.output.clean import clean
from forensics.output.command_diff import command_diff
from forensics.output.view import change_text, focus_of, live, outcome_text, ruled_out, setting_name, value_text
from forensics.schema.report import Report

_NEEDED = ("jinja2", "matplotlib")
_LONGEST = 2000


def require() -> None:
    """Raise UsageError where the extra that this format needs is not installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"--format html needs {' and '.join(missing)}", hint="pip install 'sglang-forensics[html]'"
        )  # fmt: skip


def render(report: Report) -> str:
    """The whole page."""
    require()
    from markupsafe import Markup

    style = _tidy(_read("report.css"))
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    focus = focus_of(report)
    page = _environment().get_template("report.html.j2")
    text = page.render(
        report=report,
        style=Markup(style),
        policy=Markup(f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"),
        launch=focus,
        live=live(focus) if focus else [],
        gone=ruled_out(focus) if focus else [],
        lines=view.Lines(focus),
        drawing=_drawing(report),
        charts=_charts(report),
    )
    return _tidy(text) + "\n"


def _tidy(text: str) -> str:
    """Without blank lines and trailing blanks. The style sheet is tidied before its digest is taken: it must reach the
    browser as it was counted."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def _drawing(report: Report) -> Any:
    from forensics.output.lanes import draw

    focus = focus_of(report)
    return draw(focus) if focus else None


def _charts(report: Report) -> Any:
    from markupsafe import Markup

    from forensics.output.charts import draw_charts

    focus = focus_of(report)
    if focus is None:
        return None
    found = draw_charts(focus)
    return {
        "legend": found.legend,
        "rest": found.rest,
        "flat": found.flat,
        "charts": [{"title": c.title, "unit": c.unit, "words": c.words, "svg": Markup(c.svg)} for c in found.charts],
    }


def _environment() -> Any:
    import jinja2

    names = ("report.html.j2", "parts.html.j2")
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({name: _read(name) for name in names}),
        autoescape=True,
        finalize=_inert,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions: tuple[Callable[..., Any], ...] = (
        command_diff, view.place, view.short_place, view.line_place, view.strip, view.badge, view.fix_rows,
        view.interval, view.size, view.numbers,
        view.first_words, view.followers, view.unknown, view.aside, value_text, change_text, setting_name,
        outcome_text,
    )  # fmt: skip
    environment.globals.update({function.__name__: function for function in functions})
    return environment


def _inert(value: Any) -> Any:
    """What the template prints: text without control characters, numbers as they are, markup made here untouched."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else clean(value, _LONGEST)


def _read(name: str) -> str:
    return resources.files("forensics.output").joinpath("templates", name).read_text("utf-8")
