"""Masks and shapes: a line with its digits masked, and the same with numbers, hashes and bars folded."""

from __future__ import annotations

import re

from forensics.grammar.line import opaque

DIGITS_TO_ZERO = bytes(48 if 48 <= b <= 57 else b for b in range(256))
"""`bytes.translate` table that masks digits and keeps every offset."""
ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B])", re.ASCII)
HEX_WORD = re.compile(r"\b(?=[0-9a-fA-F]*0)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b", re.ASCII)
"""An id in a masked line: a word of digits and letters up to `f`."""
_HEX = re.compile(rf"\b0[xX][0-9a-fA-F]+|{HEX_WORD.pattern}", re.ASCII)
MAYBE_HEX = "|".join(f"[0-9a-fA-F]{{{i}}}0[0-9a-fA-F]{{{7 - i}}}" for i in range(8))
"""What every hex word without a prefix holds: a pattern for RE2, found at less cost."""
_ZEROS = re.compile(r"0{2,}")
_BAR = re.compile(r"\|[^|A-Za-z0\[\]]{2,}\|")
_SPACES = re.compile(r"(?<=\S) {2,}")
_HIGH = re.compile(r"[\x80-\xff]+")
SHAPE_LENGTH = 400
"""Characters of a message that tell shapes apart."""


def strip_ansi(text: str) -> tuple[str, list[int] | None]:
    """Text without ANSI codes and, where there were any, the offset of each remaining character (else None)."""
    if "\x1b" not in text:
        return text, None
    out: list[str] = []
    places: list[int] = []
    at = 0
    for match in ANSI.finditer(text):
        out.append(text[at : match.start()])
        places += range(at, match.start())
        at = match.end()
    out.append(text[at:])
    places += range(at, len(text))
    return "".join(out), places


def _folded_hex(match: re.Match[str]) -> str:
    return "0x0" if match[0][1:2] in ("x", "X") else "0"


def fold(masked: str) -> tuple[str, bool, bool]:
    """Shape text of a masked message: number runs become `0`, hex words `0`, bars and runs of spaces shrink.

    Gives the shape, whether a hex word went in (then number runs are not one to one), and whether the text is opaque
    from its head on (request dumps: what users wrote is no shape)."""
    head = masked[:SHAPE_LENGTH]
    free = opaque().match(head)
    if free:
        return free[0], True, True
    folded, hexes = _HEX.subn(_folded_hex, head)
    folded = _ZEROS.sub("0", folded)
    if "|" in folded:
        folded = _BAR.sub("|#|", folded)
    if "  " in folded:
        folded = _SPACES.sub(" ", folded)
    if not folded.isascii():
        folded = _HIGH.sub("\u00b7", folded)
    return folded, bool(hexes), False
