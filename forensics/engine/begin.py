"""Inputs opened and their scan begun, before the rest of the program is even loaded."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.engine.scan import Scan
from forensics.frozen import frozen
from forensics.ingest.inputs import Inputs, open_inputs
from forensics.schema.options import Options


@frozen
class Begun:
    """Opened inputs and the scan that reads them. Leaving the block ends the scan."""

    inputs: Inputs
    scan: Scan

    def __enter__(self) -> Begun:
        return self

    def __exit__(self, *error: object) -> None:
        self.scan.close()


def begin(names: Sequence[str], options: Options, ahead: bool = False) -> Begun:
    """Open inputs and begin to read them. `ahead`: a second process reads while the caller does something else first.
    Raises what `open_inputs` and `Scan` raise."""
    inputs = open_inputs(names, options)
    return Begun(inputs, Scan(inputs.sources, options, ahead))
