"""The tables of a dataset: their columns and types, in one place."""

from __future__ import annotations

Columns = tuple[tuple[str, str], ...]
"""(name, type): text, int, float or bool. Every column may hold nothing (null)."""

TABLES: dict[str, Columns] = {
    "incidents": (
        ("incident", "text"), ("part", "text"), ("name", "text"), ("status", "text"), ("service", "text"),
        ("node", "text"), ("nodes", "text"), ("files", "int"), ("bytes", "int"), ("lines", "int"), ("launches", "int"),
        ("failed_launches", "int"), ("begin", "float"), ("time", "float"), ("ended", "text"), ("reached", "text"),
        ("failed", "bool"), ("cause", "text"), ("title", "text"), ("verdict", "text"), ("category", "text"),
        ("explained", "bool"), ("failure", "text"), ("mechanism", "text"), ("stage", "text"), ("rank", "text"),
        ("component", "text"), ("path", "text"), ("line", "int"), ("version", "text"), ("version_low", "text"),
        ("version_high", "text"), ("gpu", "text"), ("gpu_count", "int"), ("model", "text"), ("headline", "text"),
    ),
    "launches": (
        ("incident", "text"), ("launch", "text"), ("path", "text"), ("first_line", "int"), ("last_line", "int"),
        ("begin", "float"), ("time", "float"), ("reached", "text"), ("ended", "text"), ("failed", "bool"),
        ("cause", "text"), ("verdict", "text"), ("explained", "bool"), ("failure", "text"), ("stage", "text"),
        ("rank", "text"), ("version", "text"),
    ),
    "hypotheses": (
        ("incident", "text"), ("launch", "text"), ("hypothesis", "text"), ("position", "int"), ("kind", "text"),
        ("finding", "text"), ("title", "text"), ("category", "text"), ("verdict", "text"), ("explains", "text"),
        ("why", "text"), ("path", "text"), ("line", "int"),
    ),
    "failures": (
        ("incident", "text"), ("launch", "text"), ("failure", "text"), ("role", "text"), ("outcome", "text"),
        ("count", "int"), ("ranks", "text"), ("stage", "text"), ("component", "text"), ("mechanism", "text"),
        ("signals", "text"), ("text", "text"), ("path", "text"), ("line", "int"), ("time", "float"), ("first", "bool"),
    ),
    "facts": (
        ("incident", "text"), ("launch", "text"), ("name", "text"), ("value", "text"), ("number", "float"),
        ("how", "text"), ("path", "text"), ("line", "int"),
    ),
    "series": (
        ("incident", "text"), ("launch", "text"), ("kind", "text"), ("rank", "text"), ("metric", "text"),
        ("count", "int"), ("low", "float"), ("median", "float"), ("p95", "float"), ("high", "float"), ("mean", "float"),
    ),
    "problems": (
        ("incident", "text"), ("message", "text"), ("path", "text"), ("line", "int"), ("code", "text"),
        ("hint", "text"),
    ),
}  # fmt: skip

IN_SUMMARY = ("incidents", "launches", "hypotheses", "failures", "problems")
"""Tables that the SQLite summary holds, too: what the report for people asks."""
