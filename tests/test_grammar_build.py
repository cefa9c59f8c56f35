"""An environment that has sglang also has interegular, which makes Lark compare terminals for hours: not here."""

import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).parent.parent / "samples" / "cases" / "run-gpu-oom_prefill" / "log.txt"


def test_interegular_in_the_environment_changes_nothing(tmp_path):
    (tmp_path / "interegular").mkdir()
    (tmp_path / "interegular" / "__init__.py").write_text(
        "class Comparator:\n"
        "    @staticmethod\n"
        "    def from_regexes(_):\n"
        "        raise SystemExit('terminals are compared pairwise')\n"
    )
    code = "import interegular, forensics; print(forensics.analyze(__import__('sys').argv[1]).headline)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(SAMPLE)],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "prefill" in done.stdout, done.stderr


def test_other_users_of_lark_keep_their_check():
    import lark.lexer

    before = lark.lexer.has_interegular
    from forensics.grammar.build import make_parser

    make_parser('start: "a"', parser="lalr")
    assert lark.lexer.has_interegular == before
