"""What a run folder keeps private: restored where it fits, ignored where it is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.replay.sealed import NAME, Sealed

TREE = {"command": ["python", "--api-key", "sk-verysecretvalue123"], "env": {"HF_TOKEN": "hf_abcdefghijklmnopqrst"}}


def test_what_is_hidden_is_restored_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    sealed = Sealed(tmp_path)
    shown = sealed.hide("plan.json", TREE)
    assert "verysecret" not in str(shown) and "hf_" not in str(shown)
    assert sealed.whole("plan.json", shown) == TREE
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    sealed.forget()
    assert sealed.whole("plan.json", shown) == shown


@pytest.mark.parametrize(
    "damaged", ["", "[]", "null", '{"plan.json": 3}', '{"plan.json": {"[\\"command\\", 2]": ["[masked]"]}}']
)
def test_a_damaged_private_file_counts_for_nothing(tmp_path: Path, damaged: str) -> None:
    sealed = Sealed(tmp_path)
    shown = sealed.hide("plan.json", TREE)
    (tmp_path / NAME).write_text(damaged)
    assert sealed.whole("plan.json", shown) == shown
