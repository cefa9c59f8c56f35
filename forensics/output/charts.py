"""Batch metrics of a launch as static SVG figures, drawn by matplotlib and coloured by the page's style sheet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from forensics.frozen import frozen
from forensics.output.lanes import elapsed
from forensics.output.svg import Palette, restyle
from forensics.schema.report import LaunchInfo, SeriesInfo, TimelineInfo

PANELS = (
    ("throughput", ("decode",), "Generation throughput", "tokens/s"),
    ("token_usage", ("decode", "prefill"), "KV cache in use", ""),
    ("running", ("decode",), "Running requests", ""),
    ("queue", ("decode", "prefill"), "Queued requests", ""),
    ("accept_len", ("decode",), "Accepted draft length", "tokens"),
    ("new_tokens", ("prefill",), "Prefill batch size", "new tokens"),
)
COLOURED = 8
"""Ranks that get a colour of their own; with more, only those that the failure names do."""
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 259200, 864000)
_SIZE = (4.6, 2.2)
_INK, _GRID, _FAIL, _GAP, _REST = "#000101", "#000102", "#000103", "#000104", "#000105"
_RANKS = tuple(f"#0002{n:02x}" for n in range(COLOURED))
PALETTE: Palette = {
    _INK: "ink", _GRID: "grid", _FAIL: "fail", _GAP: "gap", _REST: "rest",
    **{colour: f"rank{n}" for n, colour in enumerate(_RANKS)},
}  # fmt: skip


@frozen
class Chart:
    """One figure: `svg` is inline markup made here, `words` say what it shows to those who cannot see it."""

    title: str
    unit: str
    svg: str
    words: str


@frozen
class Charts:
    """`legend` pairs a rank with the class of its colour; `rest` counts the ranks that are drawn grey. `flat`
    says in words which metrics never moved."""

    charts: tuple[Chart, ...]
    legend: tuple[tuple[str, str], ...]
    rest: int
    flat: tuple[str, ...] = ()


def draw_charts(launch: LaunchInfo) -> Charts:
    """Every metric that has at least two values on some rank."""
    line = launch.timeline
    if line is None:
        return Charts((), (), 0)
    picked = [(panel, _series(launch.series, panel[0], panel[1])) for panel in PANELS]
    flat = tuple(f"{panel[2]}: {_only(series):,.6g} throughout" for panel, series in picked if _is_flat(series))
    shown = [(panel, series) for panel, series in picked if series and not _is_flat(series)]
    ranks = list(dict.fromkeys(s.rank for _, series in shown for s in series))
    colours = _colours(ranks, launch)
    span = _span([one for _, series in shown for one in series], line)
    charts = tuple(
        Chart(panel[2], panel[3], _figure(panel[0], series, line, colours, span), _words(panel[2], series, line))
        for panel, series in shown
    )
    legend = tuple((rank or "no rank", PALETTE[colour]) for rank, colour in colours.items() if colour != _REST)
    return Charts(charts, legend, sum(colour == _REST for colour in colours.values()), flat)


def _is_flat(series: list[SeriesInfo]) -> bool:
    return bool(series) and len({value for s in series for value in s.values}) == 1


def _only(series: list[SeriesInfo]) -> float:
    return series[0].values[0]


def _span(series: list[SeriesInfo], line: TimelineInfo) -> tuple[float, float]:
    """From the first to the last batch, and on to the failure: one time axis for all figures."""
    low = min((s.times[0] for s in series), default=0.0)
    high = max((s.times[-1] for s in series), default=line.end)
    if line.failed is not None and line.failed >= low:
        high = max(high, line.failed)
    margin = max((high - low) * 0.03, 0.5)
    return low - margin, high + margin


def _series(all_series: Sequence[SeriesInfo], metric: str, kinds: tuple[str, ...]) -> list[SeriesInfo]:
    """The series of the first kind of batch that has something to draw."""
    for kind in kinds:
        found = [s for s in all_series if s.kind == kind and s.metric == metric and s.times]
        if any(len(s.times) > 1 for s in found):
            return found
    return []


def _colours(ranks: list[str], launch: LaunchInfo) -> dict[str, str]:
    if len(ranks) <= COLOURED:
        return dict(zip(ranks, _RANKS, strict=False))
    first = launch.first_failure
    named = [] if first is None else [first.rank or "", *first.suspect_ranks, *first.reporters]
    chosen = [rank for rank in dict.fromkeys(named) if rank in ranks][:4]
    strong = dict(zip(chosen, _RANKS, strict=False))
    return {rank: strong.get(rank, _REST) for rank in [*(r for r in ranks if r not in strong), *chosen]}


def _figure(
    name: str, series: list[SeriesInfo], line: TimelineInfo, colours: dict[str, str], span: tuple[float, float]
) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({**mpl.rcParamsDefault, "svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        _prepare(figure, axes)
        for one in sorted(series, key=lambda s: list(colours).index(s.rank)):
            strong = colours[one.rank] != _REST
            marker = "o" if len(one.times) <= 40 and strong else None
            width = 1.4 if strong else 0.7
            for times, values in stretches(one, line.silences):
                dot = "o" if len(times) == 1 else marker
                axes.plot(times, values, color=colours[one.rank], linewidth=width, marker=dot, markersize=2.6)
        _frame(axes, name, series, line, span)
        out = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return restyle(out.getvalue(), PALETTE, name)


def stretches(one: SeriesInfo, silences: Sequence[tuple[float, float]]) -> Iterator[tuple[list[float], list[float]]]:
    """The values between silences: a line across one would show what nobody measured."""
    start = 0
    for at in range(1, len(one.times) + 1):
        before, after = one.times[at - 1], one.times[at] if at < len(one.times) else float("inf")
        if at == len(one.times) or any(before <= (a + b) / 2 <= after for a, b in silences):
            yield one.times[start:at], one.values[start:at]
            start = at


def _prepare(figure: Any, axes: Any) -> None:
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.grid(axis="y", color=_GRID, linewidth=0.6)
    axes.tick_params(colors=_INK, length=3, width=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(_GRID)


def _frame(axes: Any, name: str, series: list[SeriesInfo], line: TimelineInfo, span: tuple[float, float]) -> None:
    """Limits, silences, the failure, and a time axis in the unit that fits."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

    low, high = span
    axes.set_xlim(low, high)
    top = max(max(s.values) for s in series)
    axes.set_ylim(0, top * 1.12 if top > 0 else 1.0)
    for begin, end in line.silences:
        if end > low and begin < high:
            axes.axvspan(max(begin, low), min(end, high), color=_GAP, linewidth=0)
    if line.failed is not None and line.failed >= low:
        axes.axvline(line.failed, color=_FAIL, linewidth=1.4, linestyle=(0, (4, 2)))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MultipleLocator(_step(high - low)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: elapsed(value) if value >= 0 else ""))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{100 * value:.4g} %" if name == "token_usage" else f"{value:,.6g}")
    )


def _step(length: float) -> float:
    """Seconds between two ticks: a round time that gives at most four of them."""
    return next((step for step in _STEPS if length / step <= 4), length)


def _words(title: str, series: list[SeriesInfo], line: TimelineInfo) -> str:
    low = min(min(s.values) for s in series)
    high = max(max(s.values) for s in series)
    begin, end = min(s.times[0] for s in series), max(s.times[-1] for s in series)
    failed = f"; the first failure is marked at {elapsed(line.failed)}" if line.failed is not None else ""
    return (
        f"{title} of {len(series)} rank{'s' if len(series) > 1 else ''}: {low:,.5g} to {high:,.5g}, "
        f"from {elapsed(begin)} to {elapsed(end)} after the launch began{failed}"
    )
