"""What the caller asks for: explicit inputs only, so that equal options give equal bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from forensics.frozen import frozen

SYMPTOMS = ("crash", "hang", "garbage", "slow", "refused")


@frozen
class Options:
    """`launch`: `last`, `all` or a 1-based number as text. `since`/`until`: seconds since the epoch in the log's own
    clock. `symptom`: what the user saw. `env`/`baseline`/`history`: paths of further explicit inputs. `kb`/`rules`:
    further folders. `wrapper`: forces one. `processes`: worker processes (0 = choose). `chunk_bytes`: read size.
    `engine`: `auto`, `numpy` or `compiled`. `mask`: hide secrets. `max_bytes`: bound on a JSON report (0 = none).
    `progress` is told (input, bytes read, its bytes) as the scan goes on; it changes no result."""

    launch: str = "last"
    since: float | None = None
    until: float | None = None
    symptom: str | None = None
    env: tuple[Path, ...] = ()
    baseline: Path | None = None
    history: Path | None = None
    kb: tuple[Path, ...] = ()
    rules: tuple[Path, ...] = ()
    config: Path | None = None
    wrapper: str | None = None
    processes: int = 0
    chunk_bytes: int = 4 << 20
    engine: str = "auto"
    mask: bool = True
    max_bytes: int = 0
    progress: Callable[[str, int, int], None] | None = field(default=None, compare=False, repr=False)
