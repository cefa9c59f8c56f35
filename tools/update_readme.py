"""Write the program's present output into the README's transcript."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
text = README.read_text()
found = re.search(r"(<!-- transcript: (.+?) -->\n```text\n)(.*?)(```)", text, re.S)
words = shlex.split(found.group(2))[1:]
out = subprocess.run(
    [sys.executable, "-m", "forensics", *words], cwd=README.parent, capture_output=True, text=True
).stdout
README.write_text(text[: found.start(3)] + out + text[found.end(3) :])
