"""Pictures of the reports for docs/reports.md: terminal and HTML, light and dark, drawn by a real browser.

    python tools/build_pictures.py [FOLDER]

Needs Chromium and the extra `html`. Without FOLDER the pictures of docs/pictures are made anew.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium import Browser  # type: ignore[import-not-found]  # noqa: E402 (lies among the tests)

from forensics.analysis import analyze  # noqa: E402
from forensics.output.html import render as page_of  # noqa: E402
from forensics.output.terminal import render  # noqa: E402

SAGA = "samples/cases/saga/session.log"
LOADED = "samples/cases/run-gpu2-tp2_sigstop_rank1/log.txt"
_LIGHT = TerminalTheme(
    (255, 255, 255), (36, 36, 36),
    [(0, 0, 0), (197, 38, 43), (0, 128, 0), (150, 115, 0), (0, 81, 178), (136, 23, 152), (0, 120, 140), (110, 110, 110)],
)  # fmt: skip
_DARK = TerminalTheme(
    (24, 26, 30), (220, 220, 220),
    [(60, 60, 60), (241, 98, 98), (110, 200, 110), (222, 184, 80), (110, 165, 245), (205, 130, 225), (90, 200, 215), (220, 220, 220)],
)  # fmt: skip
_PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 16px; background: {background}; color: {foreground} }}
pre {{ font: 15px/1.25 "DejaVu Sans Mono", monospace; margin: 0; white-space: pre-wrap; word-break: break-all }} {stylesheet}</style><pre>{code}</pre>"""


def terminal_page(text: str, width: int, dark: bool) -> str:
    """Coloured terminal text as a page."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="standard")
    for line in text.splitlines():
        console.print(Text.from_ansi(line), soft_wrap=True)
    return console.export_html(theme=_DARK if dark else _LIGHT, code_format=_PAGE)


def smaller(path: Path) -> None:
    """The same picture with 256 colours, chosen so that rare ones stay."""
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    few.save(path, optimize=True)


def main(folder: Path) -> None:
    """Draw them all."""
    folder.mkdir(parents=True, exist_ok=True)
    saga, loaded = analyze([SAGA]), analyze([LOADED])
    with Browser() as browser, tempfile.TemporaryDirectory() as temporary:
        page = Path(temporary, "page.html")
        for width in (80, 140):
            for dark in (False, True):
                page.write_text(terminal_page(render(saga, width=width, color=True), width, dark), encoding="utf-8")
                browser.open(page, 32 + round(width * 9.04), 1700)
                browser.picture(folder / f"terminal-{width}-{'dark' if dark else 'light'}.png", full=False)
        for name, report, width, height, dark in (
            ("html-light", saga, 1280, 1800, False),
            ("html-dark", loaded, 1280, 2700, True),
            ("html-phone-dark", saga, 390, 1500, True),
        ):
            page.write_text(page_of(report), encoding="utf-8")
            browser.open(page, width, height, dark=dark)
            browser.picture(folder / f"{name}.png", full=False)
    for path in folder.glob("*.png"):
        smaller(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures")
