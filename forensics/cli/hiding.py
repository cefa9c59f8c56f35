"""What hides secrets in the commands that read a log without diagnosing it."""

from __future__ import annotations

from collections.abc import Callable


def hider(no_mask: bool = False) -> Callable[[str], str]:
    """Masks lines that come in order, with the own patterns of forensics.toml; nothing at all with `--no-mask`."""
    if no_mask:
        return str
    from forensics.knowledge.roots import load_config
    from forensics.output.mask import LineMasker
    from forensics.schema.options import Options

    return LineMasker(load_config(Options()).secrets)
