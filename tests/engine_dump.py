"""A table as plain data, for tests that two scans are the same."""

from __future__ import annotations

from forensics.engine.table import EventTable


def dump(table: EventTable) -> dict[str, object]:
    """Everything of a table but the names and compression of its inputs."""
    out: dict[str, object] = {
        n: getattr(table, n).tobytes()
        for n in ("source", "offset", "length", "line", "time", "rank", "shape", "flags", "lead")
    }
    out["ranks"] = [str(r) for r in table.ranks]
    out["shapes"] = table.shapes
    out["counts"] = table.counts
    for name, series in table.series.items():
        out[name] = [getattr(series, n).tobytes() for n in ("row", "source", "line", "time", "rank")]
        out[name + " columns"] = {k: v.tobytes() for k, v in series.columns.items()}
    out["infos"] = [
        {k: v for k, v in i.model_dump().items() if k not in ("path", "compression", "notes")} for i in table.infos
    ]
    out["texts"] = [(table.text(i), table.column(i)) for i in range(0, len(table), max(1, len(table) // 300))]
    return out
