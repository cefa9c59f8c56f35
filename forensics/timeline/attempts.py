"""Two launches as an experiment: what was changed between them, and whether the failure is the same."""

from __future__ import annotations

import re
from collections.abc import Set

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


@frozen
class Stated:
    """The settings that a launch states, without those that place or print; `flags` counts these, too."""

    args: dict[str, Value]
    env: dict[str, Value]
    flags: int


def stated(launch: Launch) -> Stated:
    """What `between` compares."""
    args, env = _values(launch, "args."), _values(launch, "env.")
    return Stated(
        {n: v for n, v in args.items() if not _ignored_flag(n)},
        {n: v for n, v in env.items() if IGNORED_ENV.match(n) is None},
        len(args),
    )


def changes(before: Launch, after: Launch) -> tuple[Changed, ...]:
    """Flags and environment variables that differ between two launches, by name.

    Only what both launches state is compared: where just one of them prints the full arguments, a name that the
    other does not mention says nothing, unless the other has arguments too (then it is at its default, None).
    """
    return between(stated(before), stated(after))


def between(one: Stated, two: Stated) -> tuple[Changed, ...]:
    """`changes`, for a launch that is compared with many."""
    found: list[Changed] = []
    if one.flags and two.flags:
        # Releases differ in their field sets: a field that only one full dump has is no change of the user's.
        full = min(one.flags, two.flags) > FULL_DUMP
        names = one.args.keys() & two.args.keys() if full else one.args.keys() | two.args.keys()
        found += _differing("flag", one.args, two.args, names)
    found += _differing("env", one.env, two.env, one.env.keys() | two.env.keys())
    return tuple(found)


def _differing(kind: str, one: dict[str, Value], two: dict[str, Value], names: Set[str]) -> list[Changed]:
    names = {n for n in names if not equal(one.get(n), two.get(n))}
    return [Changed(kind, n, one.get(n), two.get(n)) for n in sorted(names)]


def equal(a: Value, b: Value) -> bool:
    """Whether two values mean the same: an unset flag is false or empty, numbers compare across types."""
    if a is b:
        return True
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


def _ignored_flag(name: str) -> bool:
    return name in IGNORED or (DERIVED.search(name) is not None and name not in ("model_path", "tokenizer_path"))


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
