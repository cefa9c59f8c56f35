"""What a replay must know to run a command again and must not leave behind: secrets.

In the files of a run folder they stand masked. As they were given they stand in one file of its own, which only its
owner can read, and which goes when the replay has its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forensics.frozen import frozen
from forensics.ingest.bundle import is_bundle
from forensics.ingest.inputs import open_path
from forensics.output.atomic import write_atomic
from forensics.output.mask import MASK, mask
from forensics.output.mask_bytes import ByteMasker, names_secret

NAME = "private.json"
_PIECE = 1 << 20
"""Bytes of one line that are masked at a time."""
At = tuple[str | int, ...]
Hidden = dict[str, list[Any]]
"""By its place in the tree (`["steps", "fixed", "command"]` as JSON): what the file shows, and the text as given."""


@frozen
class Sealed:
    """The secrets of the files of one run folder."""

    folder: Path

    def hide(self, name: str, tree: Any) -> Any:
        """The tree to be written as `name`, without secrets; what was hidden is kept. To be asked for before the file
        is written: what is kept and does not fit what the file shows counts for nothing."""
        hidden: Hidden = {}
        shown = _masked(tree, (), hidden)
        kept = self._kept()
        if hidden or name in kept:
            self._write({**kept, name: hidden})
        return shown

    def whole(self, name: str, shown: Any) -> Any:
        """The tree as it was given, where that is still known."""
        hidden = self._kept().get(name, {})
        return _restored(shown, (), hidden) if hidden else shown

    def forget(self) -> None:
        """The replay has its verdict: nothing has to be run again."""
        (self.folder / NAME).unlink(missing_ok=True)

    def _kept(self) -> dict[str, Hidden]:
        try:
            kept = json.loads((self.folder / NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {k: v for k, v in kept.items() if isinstance(v, dict)} if isinstance(kept, dict) else {}

    def _write(self, kept: dict[str, Hidden]) -> None:
        write_atomic(self.folder / NAME, json.dumps(kept, indent=1, sort_keys=True) + "\n")
        (self.folder / NAME).chmod(0o600)


def masked_tree(tree: Any) -> Any:
    """A tree of JSON without secrets and user text."""
    return _masked(tree, (), {})


def masked_copy(log: Path, target: Path) -> None:
    """A log, decompressed where it was compressed, with secrets masked line by line. A bundle is masked already."""
    if is_bundle(log):
        target.write_bytes(log.read_bytes())
        return
    hide = ByteMasker()
    source = open_path(log)
    try:
        source.handle.seek(0)
        with target.open("wb") as file:
            while line := source.handle.readline(_PIECE):
                file.write(hide(line))
    finally:
        source.close()


def _masked(tree: Any, at: At, hidden: Hidden) -> Any:
    if isinstance(tree, dict):
        return {k: _masked_value(k, v, (*at, k), hidden) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        # In a list of words the value of an option stands after its name.
        before = ["", *tree][: len(tree)]
        return [_masked_word(b, v, (*at, n), hidden) for n, (b, v) in enumerate(zip(before, tree, strict=True))]
    return _kept(tree, mask(tree), at, hidden) if isinstance(tree, str) else tree


def _masked_value(name: str, value: Any, at: At, hidden: Hidden) -> Any:
    shown = _masked(value, at, hidden)
    if shown != value or not isinstance(value, str | list) or not value:
        return shown
    return _kept(value, MASK, at, hidden) if names_secret(name, value) else value


def _masked_word(before: Any, word: Any, at: At, hidden: Hidden) -> Any:
    shown = _masked(word, at, hidden)
    if shown != word or not (isinstance(word, str) and isinstance(before, str) and before.startswith("-")):
        return shown
    pair = f"{before} {word}"
    masked = mask(pair)
    return word if masked == pair else _kept(word, masked.removeprefix(f"{before} "), at, hidden)


def _kept(value: Any, shown: str, at: At, hidden: Hidden) -> Any:
    if shown != value:
        hidden[json.dumps(at)] = [shown, value]
    return shown


def _restored(tree: Any, at: At, hidden: Hidden) -> Any:
    if isinstance(tree, dict):
        return {k: _restored(v, (*at, k), hidden) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_restored(v, (*at, n), hidden) for n, v in enumerate(tree)]
    told = hidden.get(json.dumps(at)) if isinstance(tree, str) else None
    # A replay can be killed between the two writes: what does not fit is of another time.
    return told[1] if isinstance(told, list) and len(told) == 2 and told[0] == tree else tree
