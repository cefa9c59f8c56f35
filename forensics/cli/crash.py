"""An unexpected exception: a short message, a masked bug-report file, exit code 70."""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from pathlib import Path

from forensics.errors import ForensicsError
from forensics.output import own
from forensics.output.clean import clean
from forensics.output.mask import mask
from forensics.version import VERSION

EXIT_BUG = 70


def report_bug(error: BaseException, argv: list[str]) -> int:
    """Write what a maintainer needs to a new file and say where it is. Gives exit code 70; never raises."""
    try:
        own.patterns()
    except ForensicsError:
        own.use(None)  # a forensics.toml that cannot be read has been told already
    text = mask(
        f"forensics {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
        f"command: forensics {' '.join(argv)}\n\n" + "".join(traceback.format_exception(error))
    )
    print(f"forensics: a bug in forensics: {type(error).__name__}: {clean(mask(str(error)), 300)}", file=sys.stderr)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="forensics-bug-", suffix=".txt", delete=False) as file:
            file.write(text)
        print(f"  hint: please report it with {Path(file.name)} (secrets are masked; read it first)", file=sys.stderr)
    except OSError:
        print(text, file=sys.stderr)
    return EXIT_BUG
