"""Two launches as an experiment: what was changed between them, and whether the failure is the same."""

from __future__ import annotations

import re

from forensics.frozen import frozen
from forensics.schema.facts import Fact, Value
from forensics.schema.launch import STAGES, Failure, Launch

IGNORED = frozenset(
    {
        "port",
        "host",
        "random_seed",
        "nccl_port",
        "dist_init_addr",
        "node_rank",
        "log_level",
        "log_level_http",
        "log_requests",
        "log_requests_level",
        "log_requests_target",
        "show_time_cost",
        "download_dir",
        "crash_dump_folder",
        "export_metrics_to_file_dir",
        "served_model_name",
        "api_key",
        "admin_api_key",
        "file_storage_path",
        "watchdog_timeout",
        "dist_timeout",
        "detokenizer_worker_num",
    }
)
"""Arguments that name places or people, or only time and print: no cause lies in them."""

IGNORED_ENV = re.compile(
    r"^(?:HOSTNAME|PWD|OLDPWD|HOME|USER|PATH|TMPDIR|SHLVL|_|LOG\w*|\w*_LOG_(?:DIR|FILE|PATH)|PYTHONPATH)$"
)
DERIVED = re.compile(r"_(?:port|path)s?$|^_")


@frozen
class Changed:
    """One flag or variable that differs. None: not set (or at its unstated default)."""

    kind: str
    name: str
    before: Value
    after: Value


def changes(before: Launch, after: Launch) -> tuple[Changed, ...]:
    """Flags and environment variables that differ between two launches, by name.

    Only what both launches state is compared: where just one of them prints the full arguments, a name that the
    other does not mention says nothing, unless the other has arguments too (then it is at its default, None).
    """
    found: list[Changed] = []
    for kind, prefix in (("flag", "args."), ("env", "env.")):
        one, two = _values(before, prefix), _values(after, prefix)
        if kind == "flag" and (not one or not two):
            continue
        for name in sorted(n for n in one.keys() | two.keys() if one.get(n, _UNSET) is not two.get(n, _UNSET)):
            a, b = one.get(name), two.get(name)
            if not (equal(a, b) or _ignored(kind, name) or _missing_field(kind, name, one, two)):
                found.append(Changed(kind, name, a, b))
    return tuple(found)


_UNSET: Value = "\x00unset"


def equal(a: Value, b: Value) -> bool:
    """Whether two values mean the same: an unset flag is false or empty, numbers compare across types."""
    if a == b and isinstance(a, bool) == isinstance(b, bool):
        return True
    if _empty(a) and _empty(b):
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    return _number(a) is not None and _number(a) == _number(b)


def _empty(value: Value) -> bool:
    return value is None or value is False or value == "" or value == ()


def _number(value: Value) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _values(launch: Launch, prefix: str) -> dict[str, Value]:
    return {n.removeprefix(prefix): f.value for n, f in launch.facts.items() if n.startswith(prefix) and _stated(f)}


def _stated(fact: Fact) -> bool:
    return not fact.how.startswith("inferred")


def _ignored(kind: str, name: str) -> bool:
    if kind == "env":
        return IGNORED_ENV.match(name) is not None
    return name in IGNORED or (DERIVED.search(name) is not None and name not in ("model_path", "tokenizer_path"))


def _missing_field(kind: str, name: str, one: dict[str, Value], two: dict[str, Value]) -> bool:
    """Releases differ in their field sets: a field that only one full dump has is no change of the user's."""
    return kind == "flag" and (name not in one or name not in two) and min(len(one), len(two)) > FULL_DUMP


FULL_DUMP = 60
"""A `server_args=` dump has far more fields than any command line."""


def same_failure(a: Launch, b: Launch) -> bool:
    """Whether two launches fail the same way: the same mechanism or a shared signal, in the same place."""
    one, two = a.failure(a.first_failure), b.failure(b.first_failure)
    if one is None or two is None:
        return False
    return _alike(one, two) and _same_place(one.stage, two.stage)


def _alike(one: Failure, two: Failure) -> bool:
    return one.mechanism == two.mechanism or bool(set(one.signals) & set(two.signals))


def _same_place(a: str, b: str) -> bool:
    """Phases of serving are one place: which batch hits a fault first is chance."""
    return a == b or "unknown" in (a, b) or (a not in STAGES and b not in STAGES)


def got_further(before: Launch, after: Launch) -> bool:
    """Whether the later launch came further, or stood where the earlier one failed."""
    order = {name: place for place, name in enumerate(STAGES)}
    a, b = order.get(before.reached, 0), order.get(after.reached, 0)
    return b > a or (b == a and before.first_failure is not None and after.first_failure is None)
