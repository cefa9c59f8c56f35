"""Tables of the text report: a launch beside one that works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from forensics.output import terminal_words as words
from forensics.output.baseline_rows import Row, rows
from forensics.output.clean import clean
from forensics.output.view import setting_name, value_text
from forensics.schema.report import BaselineInfo, ComparisonInfo

if TYPE_CHECKING:
    from forensics.output.terminal import Page


def comparison(page: Page, found: ComparisonInfo | None) -> None:
    if found is None or not found.differences:
        return
    page.head("Against the nearest launch known to work")
    page.line(Text(clean(f"{found.title or found.deployment} ({found.strength})")), indent=2)
    shown = found.differences[: page.amount.rows]
    tags = ["tried    " if d.tested else "untested " for d in shown]
    _table(page, [Row(setting_name(d.name), value_text(d.here), value_text(d.control)) for d in shown], tags)
    page.more(len(found.differences) - len(shown))


def baseline(page: Page, found: BaselineInfo) -> None:
    """The good run that the caller named stands in place of the nearest known one."""
    page.head("Against the good run")
    page.line(Text(clean(f"{words.file_name(found.path)} {found.launch}, reached {found.reached}")), indent=2)
    told = rows(found)
    shown = told[: page.amount.rows]
    if shown:
        _table(page, shown, [""] * len(shown))
    page.more(len(told) - len(shown))
    new = found.new_messages[: page.amount.rows // 2]
    for where in new:
        text = Text("only here  ", style="dim").append(words.cut(clean(where.text or ""), page.console.width))
        page.line(text.append(f"  {page.place(where)}", style="dim"), indent=2, hang=4)
    page.more(len(found.new_messages) - len(new))
    if page.detail:
        for where in found.lost_messages:
            page.line(Text(f"only there  {clean(where.text or '')}", style="dim"), indent=2, hang=4)
    if not told and not new:
        page.line(Text("no difference that matters"), indent=2)


def _table(page: Page, shown: Sequence[Row], tags: Sequence[str]) -> None:
    names = [clean(r.name) for r in shown]
    here = [clean(r.here) for r in shown]
    first = min(max(map(len, names)), 34)
    second = min(max(map(len, here)), max(12, (page.console.width - first - 15) // 2))
    page.line(Text(f"{'':{len(tags[0])}}{'':<{first}}  {'here':<{second}}  there", style="dim"), indent=2)
    for tag, name, value, row in zip(tags, names, here, shown, strict=True):
        text = Text(tag, style="dim" if tag.startswith("tried") else "")
        text.append(f"{name:<{first}}  {words.cut(value, second):<{second}}  ")
        text.append("the same" if row.there == row.here else clean(row.there), style="dim")
        if not page.detail:
            text.truncate(page.console.width - 2, overflow="ellipsis")
        page.line(text, indent=2, hang=4)
