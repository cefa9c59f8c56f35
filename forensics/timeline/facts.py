"""Facts of one launch: typed values with the place that states them (docs/facts.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.schema.block import Block
from forensics.schema.facts import Fact
from forensics.timeline.envreport import add_reports, read_env_report
from forensics.timeline.facts_args import add_command, add_server_args
from forensics.timeline.facts_features import add_features
from forensics.timeline.facts_messages import add_messages
from forensics.timeline.facts_sheet import Sheet


def collect_facts(
    table: EventTable,
    rows: npt.NDArray[np.int64],
    blocks: Sequence[Block],
    env_reports: Sequence[Fact | Path | str] = (),
) -> dict[str, Fact]:
    """Facts that the rows of one launch state, by name, in name order.

    `env_reports` are facts of separate reports, or paths of such reports (read by `read_env_report`): they fill what
    the log does not state. Only the first row of each shape is read. Raises InputError for an unreadable report.
    """
    del blocks  # facts stand on single lines; blocks are part of the call for symmetry with the other stages
    sheet = Sheet(table, rows)
    add_server_args(sheet)
    add_command(sheet)
    add_reports(sheet)
    for report in env_reports:
        for fact in (report,) if isinstance(report, Fact) else read_env_report(Path(report)):
            sheet.put(fact.name, fact.value, fact.where, fact.how)
    add_messages(sheet)
    _model(sheet)
    _launch(sheet)
    add_features(sheet)
    return dict(sorted(sheet.facts.items()))


def _model(sheet: Sheet) -> None:
    path = sheet.value("args.model_path")
    if isinstance(path, str) and path:
        sheet.put("model.path", path, sheet.where("args.model_path"))
        sheet.put("model.name", path.rstrip("/").rpartition("/")[2] or path, sheet.where("args.model_path"))
    for fact, field in (("kv.page_size", "args.page_size"), ("launch.device", "args.device")):
        value = sheet.value(field)
        if value is not None:
            sheet.facts.pop(fact, None)
            sheet.put(fact, value, sheet.where(field))
    quantization = sheet.value("args.quantization")
    if isinstance(quantization, str):
        sheet.put("weights.quantization", quantization, sheet.where("args.quantization"), "inferred: args.quantization")


def _launch(sheet: Sheet) -> None:
    """Expected ranks (tp x pp, times dp where replicas are whole servers), nodes and role."""
    tp = sheet.value("args.tp_size")
    if isinstance(tp, int):
        pp, dp = (_count(sheet, f"args.{n}") for n in ("pp_size", "dp_size"))
        ranks = tp * pp * (1 if sheet.value("args.enable_dp_attention") else dp)
        sheet.put("launch.ranks", ranks, sheet.where("args.tp_size"), "inferred: tp x pp x dp")
    nodes = sheet.value("args.nnodes")
    if isinstance(nodes, int):
        sheet.put("launch.nodes", nodes, sheet.where("args.nnodes"))
    mode = sheet.value("args.disaggregation_mode")
    if mode in ("prefill", "decode"):
        sheet.put("launch.role", mode, sheet.where("args.disaggregation_mode"))
    elif "args.model_path" in sheet.facts:
        sheet.put("launch.role", "server", sheet.where("args.model_path"))
    elif any(kind == "router" for kind, _, _ in sheet.first_rows()):
        row = next(row for kind, _, row in sheet.first_rows() if kind == "router")
        sheet.put("launch.role", "router", sheet.table.span(row), "inferred: the router's own lines")


def _count(sheet: Sheet, name: str) -> int:
    value = sheet.value(name)
    return value if isinstance(value, int) and value > 0 else 1
