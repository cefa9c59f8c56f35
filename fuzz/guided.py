"""One target under atheris: `python fuzz/guided.py TARGET [libFuzzer options] CORPUS`. Started by run.py."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

with atheris.instrument_imports(include=["forensics"]):
    import forensics.analysis
    import forensics.engine.record
    import forensics.grammar.blocks
    import forensics.grammar.command
    import forensics.grammar.conditions
    import forensics.grammar.server_args
    import forensics.knowledge.finding
    import forensics.output.mask
    import forensics.replay.edits
    import forensics.rulebook.schema
    import forensics.timeline.envreport  # noqa: F401

from targets import TARGETS, check  # noqa: E402


def main() -> None:
    """Hand the loop to libFuzzer."""
    name = sys.argv.pop(1)
    target = next(t for t in TARGETS if t.name == name)
    atheris.Setup(sys.argv, lambda data: check(target, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
