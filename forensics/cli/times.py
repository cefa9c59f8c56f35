"""Times and sizes as a person types them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from forensics.errors import UsageError

_SIZE = re.compile(r"(\d+)\s*([kKmMgG]?)(?:i?[bB])?")


def parse_time(text: str | None) -> float | None:
    """`2026-01-05 10:00[:00]` or `2026-01-05` as seconds since the epoch in the log's own clock; None stays None."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise UsageError(
            f"not a time: {text!r}", hint="write it as 2026-01-05 10:30:00, in the log's own clock"
        ) from None


def parse_size(text: str | None) -> int:
    """`65536`, `64k`, `2MB` as bytes; None is 0."""
    if text is None:
        return 0
    match = _SIZE.fullmatch(text.strip())
    if not match or int(match.group(1)) == 0:
        raise UsageError(f"not a size: {text!r}", hint="write it as 65536, 64k or 2MB")
    return int(match.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30}[match.group(2).lower()]
