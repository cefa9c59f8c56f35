"""Facts of a launch as conditions see them: known or not, and what would make an unknown one known."""

from __future__ import annotations

from itertools import islice

from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.schema.facts import Value
from forensics.schema.span import Span

FULL_DUMP = 40
"""Fewer `args.*` facts than this come from a command line, not from a dump of all fields."""

_CHECK_ENV = "python3 -m sglang.check_env"
_SETTLE = {
    "args": "give the launch command, or the log from its `server_args=` line on",
    "gpu": _CHECK_ENV,
    "host": "nvidia-smi topo -m && free -g",
    "version": _CHECK_ENV,
    "weights": "cat MODEL_PATH/config.json (quantization_config, torch_dtype) and ls -l MODEL_PATH",
    "model": "cat MODEL_PATH/config.json",
    "kv": "give the log from start-up on (`KV Cache is allocated …`)",
    "launch": "give the launch command of every node",
    "feature": "give the log from its `server_args=` line on",
}


@frozen
class Lookup:
    """`known` False: nothing in the input tells. A known value may be None (null)."""

    known: bool
    value: Value = None
    where: Span | None = None
    how: str = ""


def look_up(case: Case, name: str) -> Lookup:
    """One fact. A field that a full server_args dump lacks is known to be unset: this release has no such argument."""
    found = case.memo.facts.get(name)
    if found is None:
        found = case.memo.facts[name] = _looked_up(case, name)
    return found


def _looked_up(case: Case, name: str) -> Lookup:
    fact = case.launch.facts.get(name)
    if fact is not None:
        return Lookup(True, fact.value, fact.where, fact.how)
    if name == "version.sglang" and (case.launch.version.exact or case.launch.version.low or case.launch.version.high):
        where = next((at for _, at in case.launch.version.grounds if at is not None), None)
        return Lookup(True, case.launch.version.exact, where, "interval")
    if name.startswith("args.") and has_full_dump(case):
        return Lookup(True, None, None, "this release has no such argument")
    return Lookup(False)


def has_full_dump(case: Case) -> bool:
    """Whether the launch prints all server arguments."""
    known = case.memo.full_dump
    if known is None:
        args = (name for name in case.launch.facts if name.startswith("args."))
        known = case.memo.full_dump = next(islice(args, FULL_DUMP - 1, None), None) is not None
    return known


def settle_fact(name: str) -> str:
    """The command or datum that would tell a fact."""
    group, _, rest = name.partition(".")
    if group == "env":
        return f"tr '\\0' '\\n' < /proc/$(pgrep -of sglang)/environ | grep ^{rest}="
    if name == "version.sglang":
        return 'python3 -c "import sglang; print(sglang.__version__)"'
    return _SETTLE.get(group, _CHECK_ENV)
