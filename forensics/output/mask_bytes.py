"""Raw log lines masked as they are copied: bytes stay bytes, and a line that is JSON stays JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from forensics.output.mask import MASK, LineMasker, mask

Hide = Callable[[str], str]
_MESSAGES = ("log", "MESSAGE", "message", "msg", "line", "textPayload")
"""Names under which collectors keep the line of the log."""


class ByteMasker:
    """Masks raw lines in order. A line that comes in pieces is hidden from the first secret on."""

    def __init__(self, extra: Sequence[str] = ()) -> None:
        self._hide = LineMasker(extra)
        self._extra = tuple(extra)
        self._open = False
        self._hidden = False

    def __call__(self, line: bytes) -> bytes:
        """One line with its newline, or a piece of one."""
        end = b"\n" if line.endswith(b"\n") else b""
        if self._open and self._hidden:
            self._open = not end
            return end
        bare = line.removesuffix(b"\n")
        try:
            text, encoding = bare.decode(), "utf-8"
        except UnicodeDecodeError:  # every byte stays what it is
            text, encoding = bare.decode("latin-1"), "latin-1"
        hidden = None if self._open else self._json(text)
        if hidden is None:
            hidden = self._hide(text)
        self._open, self._hidden = not end, hidden != text
        return hidden.encode(encoding, "replace") + end

    def _json(self, text: str) -> str | None:
        """A line that is one JSON object (docker's json-file, `journalctl -o json`), masked value by value; None where
        it is no such line."""
        if not (text.startswith("{") and text.rstrip("\r").endswith("}")):
            return None
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return None
        # Only the line of the log may open or close a private key.
        message = next((data[name] for name in _MESSAGES if isinstance(data.get(name), str)), None)
        told = {message: _valid(message, self._hide)} if message else {}
        masked = _object(data, lambda v: told[v] if v in told else _valid(v, self._plain), self._extra)
        return text if masked == data else _dumped(masked, text)

    def _plain(self, text: str) -> str:
        return mask(text, self._extra)


def _valid(text: str, hide: Hide) -> str:
    """A value masked; half a pair of surrogates, which JSON can spell and nothing else, goes where the rest changes."""
    clean = text.encode("utf-8", "replace").decode()
    hidden = hide(clean)
    return text if hidden == clean else hidden


def _object(data: dict[str, Any], hide: Hide, extra: tuple[str, ...]) -> dict[str, Any]:
    """Values masked by themselves, and hidden whole where only the name tells a secret."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        clean = _value(value, hide, extra)
        if clean == value and value not in (None, "") and names_secret(name, value, extra):
            clean = MASK
        found[mask(name, extra)] = clean
    return found


def names_secret(name: str, value: Any, extra: Sequence[str] = ()) -> bool:
    """Whether only the name beside it tells that a value of JSON is a secret or user text."""
    pair = json.dumps({name: value})
    return mask(pair, extra) != pair


def _value(value: Any, hide: Hide, extra: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_value(item, hide, extra) for item in value]
    return _object(value, hide, extra) if isinstance(value, dict) else value


def _dumped(data: dict[str, Any], like: str) -> str:
    """JSON text in the spacing of the line that it stands for."""
    separators = (", ", ": ") if '": ' in like else (",", ":")
    text = json.dumps(data, ensure_ascii=False, separators=separators)
    return text if text.encode("utf-8", "replace").decode() == text else json.dumps(data, separators=separators)
