"""Advice: phrases that propose something are signals of their own and never what failed first."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.knowledge.library import library
from forensics.knowledge.proof import analyze_text
from forensics.knowledge.store import load

HEAD = "[2026-03-02 11:20:01] server_args=ServerArgs(model_path='/models/m', tp_size=1)\n"
OOM = (
    "[2026-03-02 11:21:07] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/env/lib/python3.12/site-packages/sglang/srt/models/qwen2.py", line 88, in forward\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.11 GiB. GPU 0 has a total capacity of 79.11 GiB of "
    "which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"
)
ADVICE = [
    ("fragmentation-advice", OOM.split("\n")[2]),
    ("oom-killer-advice", "If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T` to check."),
    ("transformers-upgrade-advice", "You can update Transformers with the command `pip install --upgrade transformers`."),
    ("kernel-package-advice", "3. pip install --upgrade sgl_kernel"),
    ("occupied-gpus-advice", "The memory capacity is unbalanced. Some GPUs may be occupied by other processes."),
    ("lower-batch-size-advice", "ValueError: Decode out of memory. Try to lower your batch size."),
    ("slow-node-advice", "It is likely due to unexpected failures (e.g., OOM) or a slow node."),
    ("deepgemm-dim-advice", "Consider increasing MIN_DEEPGEMM_DIM in matmul_persistent() or disabling deterministic mode"),
    ("cuda-async-advice", "CUDA kernel errors might be asynchronously reported at some other API call"),
    ("capture-advice", "Possible solutions:"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "line"), ADVICE, ids=[a[0] for a in ADVICE])
def test_each_phrase_is_known_as_advice(rule: str, line: str) -> None:
    from forensics.rulebook.patterns import compiled

    known = load().rules[rule]
    assert known.role == "advice" and known.severity == "info"
    assert any(compiled(p).search(line) for p in known.patterns)


def test_every_advice_rule_is_tested_here_or_in_the_samples() -> None:
    named = {rule for rule, _ in ADVICE}
    rest = {r.id for r in load().rules.values() if r.role == "advice"} - named
    assert rest <= {"too-few-gpus-advice", "tokenizer-llama-hint", "trust-remote-code-hint"}


def test_advice_at_the_end_of_a_failure_does_not_hide_it(tmp_path: Path) -> None:
    report = analyze_text(HEAD + OOM, library(load()), None)
    assert report is not None
    (launch,) = report.launches
    assert launch.first_failure is not None and launch.first_failure.where.line == 4


def test_advice_alone_is_no_failure() -> None:
    lines = "".join(f"[2026-03-02 11:21:07] {line}\n" for rule, line in ADVICE if rule in ("capture-advice", "cuda-async-advice", "kernel-package-advice"))  # fmt: skip
    report = analyze_text(HEAD + lines, library(load()), None)
    assert report is not None
    assert all(launch.first_failure is None and launch.hypotheses == [] for launch in report.launches)
