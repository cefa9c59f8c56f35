"""The user's own patterns of secrets (`[privacy] secrets` of forensics.toml), for every text that a process masks.

The command line says where they come from; they are read when the first text is masked. A program that uses the
library hands its patterns over with the knowledge base instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

_provider: Callable[[], Sequence[str]] | None = None
_known: tuple[str, ...] | None = ()


def use(provider: Callable[[], Sequence[str]] | None) -> None:
    """From now on the patterns that `provider` gives are hidden, too; None: no further ones."""
    global _provider, _known
    _provider, _known = provider, None if provider else ()


def patterns() -> tuple[str, ...]:
    """The own patterns. Raises what reading them raises: a text is not shown with a secret that was to be hidden."""
    global _known
    if _known is None:
        assert _provider is not None
        _known = tuple(_provider())
    return _known
