"""What each sglang release knows: flags, environment variables, messages. Data: forensics/data, read from the releases.

Not every release was read. `first` is the first *read* release that has a thing, `last` the last one; the change
itself lies somewhere between two neighbours, so that questions about a release in between have no answer (None).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from forensics.frozen import frozen
from forensics.rulebook.versions import Key, version_key
from forensics.schema.facts import VersionInterval
from forensics.schema.finding import FixStep

OWN_ENV = ("SGLANG_", "SGL_")
"""Prefixes of variables that only sglang reads."""
FOREIGN_ENV = (
    "NCCL_", "RCCL_", "HCCL_", "GLOO_", "TORCH", "PYTORCH_", "CUDA_", "HIP_", "HSA_", "NVSHMEM_", "UCX_", "MC_", "OMP_",
    "KMP_", "MKL_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "TRITON_", "FLASHINFER_", "CUTE_", "XDG_",
)  # fmt: skip
"""Prefixes of variables that the libraries under sglang read, whatever sglang's own source says about them."""


@frozen
class Lifetime:
    """`first`/`last`: read releases that have the thing (last None: the newest has it). The thing can exist from `low`
    to `high` at most (None: open), and surely exists from `first` to `last`. `low` is the first development build after
    the read release that lacks it: builds of the main branch may have the thing before any release has."""

    first: str | None
    last: str | None
    low: str | None
    high: str | None


@frozen
class Rename:
    """`old` became `new` (a flag, `flag=value`, or an environment variable): `new` is known from release `since` on.
    `inverted`: the new one means the opposite. `stated`: the program says so itself (else inferred from its source)."""

    old: str
    new: tuple[str, ...]
    since: str | None
    inverted: bool = False
    stated: bool = True


class Catalog:
    """Look-ups over the package data. All version arguments and results are release names."""

    def __init__(self, flags: dict[str, Any], messages: dict[str, Any], releases: list[str]) -> None:
        self.read: list[str] = flags["versions"]
        self.flags: dict[str, dict[str, Any]] = flags["flags"]
        self.env: dict[str, dict[str, Any]] = flags["env"]
        self.messages: list[dict[str, Any]] = messages["messages"]
        self.releases = sorted(set(releases) | set(self.read), key=_key)
        self._keys = [_key(r) for r in self.releases]
        self._read_keys = [_key(r) for r in self.read]

    # -- releases -----------------------------------------------------------------------------------------------

    @property
    def newest(self) -> str:
        """The newest release that was read."""
        return self.read[-1]

    def after(self, version: str) -> str | None:
        """The release after this version, None where there is none."""
        at = bisect_right(self._keys, _key(version))
        return self.releases[at] if at < len(self.releases) else None

    def before(self, version: str) -> str | None:
        """The release before this version, None where there is none."""
        at = bisect_left(self._keys, _key(version)) - 1
        return self.releases[at] if at >= 0 else None

    def lifetime(self, first: str | None, last: str | None) -> Lifetime:
        """Widens the read releases `first` and `last` to all releases that may have the thing."""
        low = high = None
        if first is not None and first != self.read[0]:
            low = first_build_after(self.read[self.read.index(first) - 1])
        if last is not None and last != self.read[-1]:
            high = self.before(self.read[self.read.index(last) + 1])
        return Lifetime(first, last, low, high)

    def exists(self, life: Lifetime, version: str) -> bool | None:
        """Whether a thing with this lifetime is in a release; None between two read releases and after the newest."""
        key = _key(version)
        if life.first is None:
            return None
        if (life.low and key < _key(life.low)) or (life.high and key > _key(life.high)):
            return False
        if key > self._read_keys[-1]:
            return None
        sure = _key(life.first) <= key and (life.last is None or key <= _key(life.last))
        return True if sure else None

    # -- flags --------------------------------------------------------------------------------------------------

    def flag(self, name: str) -> tuple[str, dict[str, Any]] | None:
        """Entry of a flag by any spelling: `--x`, an alias, or an unambiguous prefix (argparse takes prefixes)."""
        name = name.partition("=")[0]
        found = self.flags.get(name)
        if found is None:
            starts = [n for n in self.flags if n.startswith(name)] if len(name) > 3 else []
            targets = {self.flags[n].get("alias_of", n) for n in starts}
            if len(targets) != 1:
                return None
            name = targets.pop()
            return name, self.flags[name]
        main = found.get("alias_of")
        return (main, self.flags[main]) if main in self.flags else (name, found)

    def flag_lifetime(self, name: str) -> Lifetime | None:
        """Lifetime of exactly this spelling, None where no read release knows it."""
        entry = self.flags.get(name.partition("=")[0])
        return self.lifetime(entry["first"], entry["last"]) if entry else None

    def dest(self, name: str) -> str:
        """The server_args field of a flag: from the catalog, else the name with underscores."""
        found = self.flag(name)
        return str(found[1]["dest"]) if found and found[1].get("dest") else name.lstrip("-").replace("-", "_")

    @cached_property
    def by_dest(self) -> dict[str, str]:
        """Flag by server_args field; the longest-lived flag where several set one field."""
        table: dict[str, str] = {}
        for name, entry in self.flags.items():
            dest = entry.get("dest")
            if dest and ("renamed_to" not in entry or dest not in table):
                table[dest] = name
        return table

    def takes_value(self, name: str) -> bool | None:
        """Whether a flag is followed by a value; None for an unknown flag."""
        found = self.flag(name)
        return None if found is None else found[1].get("type") not in ("bool", "NoneType", None)

    def takes_several(self, name: str) -> bool:
        """Whether a flag takes any number of words in some release; False for an unknown flag."""
        found = self.flag(name)
        types = [found[1].get("type"), *(c["value"] for c in found[1].get("type_history", ()))] if found else []
        return any("list[" in (kind or "") for kind in types)

    def listed(self, name: str) -> bool:
        """Whether a flag takes, or took in some release, one of listed names: no path, address or module."""
        found = self.flag(name)
        return found is not None and bool(found[1].get("choices"))

    def choices(self, name: str, version: str) -> frozenset[str] | None:
        """Values that a release accepts for a flag; None where it takes any, or where it is not known."""
        found = self.flag(name)
        if found is None or "choices" not in found[1]:
            return None
        values: set[str] = set()
        for change in found[1]["choices"]:
            if _key(change["since"]) > _key(version):
                break
            if change.get("free"):
                return None
            values |= {str(v) for v in change.get("add", ())}
            values -= {str(v) for v in change.get("remove", ())}
        return frozenset(values) or None

    def default(self, name: str, version: str) -> object:
        """Default of a flag in a release; None also where the release decides at start-up."""
        found = self.flag(name)
        value: object = None
        for change in found[1].get("default", ()) if found else ():
            if _key(change["since"]) <= _key(version):
                value = change["value"]
        return value

    def renames(self, name: str) -> Rename | None:
        """What a flag or environment variable became, None where it was not renamed."""
        entry = self.flags.get(name) or self.env.get(name)
        if not entry or "renamed_to" not in entry:
            return None
        new = tuple(entry["renamed_to"].split(" + "))
        since = [self._first(part.partition("=")[0]) for part in new]
        known = [s for s in since if s is not None]
        latest = max(known, key=_key) if known else entry.get("deprecated_since")
        return Rename(name, new, latest, bool(entry.get("inverted")), entry.get("evidence") == "source")

    def renamed_from(self, name: str) -> tuple[str, ...]:
        """Older names of a flag or environment variable."""
        return self._older.get(name, ())

    @cached_property
    def _older(self) -> dict[str, tuple[str, ...]]:
        table: dict[str, tuple[str, ...]] = {}
        for source in (self.flags, self.env):
            for old, entry in source.items():
                for part in (entry.get("renamed_to") or "").split(" + "):
                    if part and "=" not in part:
                        table[part] = (*table.get(part, ()), old)
        return table

    def _first(self, name: str) -> str | None:
        entry = self.flags.get(name) or self.env.get(name)
        return entry.get("first") if entry else None

    # -- environment and messages -------------------------------------------------------------------------------

    def env_lifetime(self, name: str) -> Lifetime | None:
        """Lifetime of an environment variable, None where no read release names it, and for one that other software
        reads: when sglang began or ceased to touch it says nothing about whether it works."""
        entry = self.env.get(name)
        if entry is None or self.read_elsewhere(name):
            return None
        return self.lifetime(entry["first"], entry["last"])

    def read_elsewhere(self, name: str) -> bool:
        """Whether a variable is read by other software (torch, NCCL, gloo, CUDA …), by its name or because sglang
        sets it for others."""
        if name.startswith(OWN_ENV):
            return False
        return name.startswith(FOREIGN_ENV) or bool(self.env.get(name, {}).get("set_by_sglang"))


def first_build_after(release: str) -> str:
    """The name of the first development build after a release: `0.5.8.post1` gives `0.5.8.post2.dev0`."""
    found = re.fullmatch(r"(.*?(?:post|rc))(\d+)", release)
    return f"{found.group(1)}{int(found.group(2)) + 1}.dev0" if found else f"{release}.post1.dev0"


def _key(version: str) -> Key:
    key = version_key(version)
    if key is None:
        raise ValueError(f"not a release name: {version!r}")
    return key


def check_fix(step: FixStep, interval: VersionInterval) -> tuple[FixStep, ...]:
    """The step as the releases of the interval understand it: see `catalog_fix.check_fix`."""
    from forensics.timeline.catalog_fix import check_fix as check

    return check(step, interval)


def check_changes(steps: Sequence[FixStep], interval: VersionInterval) -> list[tuple[FixStep, ...]]:
    """The changes of a fix as the releases of the interval understand them: see `catalog_fix.check_changes`."""
    from forensics.timeline.catalog_fix import check_changes as check

    return check(steps, interval)


@cache
def catalog() -> Catalog:
    """The catalog of the package data (read once)."""
    base = Path(__file__).parent.parent / "data"
    flags, messages, releases = (
        json.loads((base / name).read_text(encoding="utf-8"))
        for name in ("sglang_flags.json", "messages.json", "releases.json")
    )
    return Catalog(flags, messages, releases["sglang"])
