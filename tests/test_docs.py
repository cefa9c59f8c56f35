"""Every command that the documentation shows is run, and the README's transcript is what the program prints."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "kb" / "README.md"]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
# Placeholders of the README's overview; the same commands are run with real samples in docs/.
OVERVIEW = re.compile(
    r"(?<![\w/])(server\.log|good\.log|node0\.log|node1\.log\.gz|check_env\.txt|session\.log|fixed\.log)"
)


def commands(page: Path) -> list[str]:
    found = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#.*", "", line).strip()
            if line.startswith("forensics "):
                found.append(line)
    return found


ALL = [(page.relative_to(ROOT).as_posix(), line) for page in PAGES if page.exists() for line in commands(page)]


@pytest.fixture(scope="session")
def desk(tmp_path_factory) -> Path:
    """A checkout's data to work on: what a command writes does not end up in the repository."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("kb", "rules", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "samples").symlink_to(ROOT / "samples")
    return folder


@pytest.mark.parametrize("page", dict.fromkeys(page for page, line in ALL if not OVERVIEW.search(line)))
def test_the_documented_commands_run(page, desk):
    """One page after another, each from its top: later commands of a page may use what earlier ones wrote."""
    for line in [line for name, line in ALL if name == page and not OVERVIEW.search(line)]:
        done = subprocess.run(
            [sys.executable, "-m", "forensics", *shlex.split(line)[1:]],
            cwd=desk,
            capture_output=True,
            text=True,
            timeout=120,
            env={"PATH": "/usr/bin:/bin", "HOME": str(desk)},
        )
        assert done.returncode in (0, 1), f"{page}: {line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr


def test_every_command_is_documented():
    from forensics.cli.app import available

    text = "\n".join(page.read_text() for page in PAGES if page.exists())
    assert [name for name in available() if f"forensics {name}" not in text] == []


def test_the_overview_commands_parse():
    """The README's placeholder commands name real options of real commands."""
    for _, line in [p for p in ALL if OVERVIEW.search(p[1])]:
        words = shlex.split(line)
        shown = subprocess.run([sys.executable, "-m", "forensics", words[1], "--help"], capture_output=True, text=True)
        for option in [w.split("=")[0] for w in words if w.startswith("--")]:
            assert option in shown.stdout, line


def test_the_readmes_transcript_is_what_the_program_prints():
    text = (ROOT / "README.md").read_text()
    found = re.search(r"<!-- transcript: (.+?) -->\n```text\n(.*?)```", text, re.S)
    words = shlex.split(found.group(1))[1:]
    done = subprocess.run([sys.executable, "-m", "forensics", *words], cwd=ROOT, capture_output=True, text=True)
    assert found.group(2) == done.stdout, "run tools/update_readme.py"
