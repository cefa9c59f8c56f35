"""What to do about a stated symptom that no cause fits: garbage, slowness and standstills have no error line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.diagnose.relaunch import experiment
from forensics.diagnose.tried import has_step
from forensics.rulebook.case import Case
from forensics.schema.finding import FixStep
from forensics.schema.report import NextStep
from forensics.timeline.catalog_fix import check_changes
from forensics.timeline.hang import dumps

HANG = (
    ("the Python and native stacks of every scheduler while it hangs", "py-spy dump --native --pid PID"),
    ("use of every GPU while it hangs", "nvidia-smi"),
    ("the last batch line of every rank: running requests, queue and token usage before it stood still", ""),
)
GARBAGE = (
    ("whether every file of the weight index is on disk and whole", "ls -lL MODEL/*.safetensors | wc -l"),
    ("one greedy answer of the same prompt by another engine, with the same chat template", ""),
)
SLOW = (
    ("use and clocks of every GPU under load", "nvidia-smi dmon -s pucm -c 20"),
    ("batch lines under load: running requests, queue, cuda graph, token usage, accept length", ""),
    ("where the CPU time of a scheduler goes", "py-spy top --pid PID"),
)
NATIVE = re.compile(r"^(?:nccl|cuda|cu[A-Z]|pthread|poll$|epoll|futex|0x)|::")
"""Functions that only a dump with native frames shows."""
COLLECT = {"garbage": GARBAGE, "slow": SLOW}
"""What to collect, by symptom."""
_TRY: dict[str, tuple[tuple[FixStep, str], ...]] = {
    "garbage": (
        (FixStep("env", "set", "SGLANG_ENABLE_NAN_LOGITS_CHECK", "1", versions=">=0.5.14"),
         "it dies: the numbers break (weights, scales, kernels); it does not: the text goes wrong"),
        (FixStep("flag", "set", "--enable-nan-detection"),
         "it reports NaN: the numbers break (weights, scales, kernels); it does not: the text goes wrong"),
        (FixStep("flag", "set", "--attention-backend", "triton"), "right answers: the attention backend is part of it"),
        (FixStep("flag", "set", "--disable-cuda-graph"), "right answers: graph replay is part of it"),
    ),
    "slow": (
        (FixStep("flag", "remove", "--disable-cuda-graph"), "faster: it ran without graphs"),
        (FixStep("flag", "remove", "--disable-radix-cache"), "faster: prefixes were computed again"),
    ),
}  # fmt: skip


def hang_data(case: Case) -> tuple[tuple[str, str], ...]:
    """What to collect of a standstill; not the stacks that the log holds already."""
    found = dumps(case.blocks, case.launch.rows)
    served = HANG if case.launch.reached in ("warmup", "serving") else HANG[:2]  # no batches before
    if not found:
        return served
    held = {d.rank for d in found}
    absent = [r for r in case.launch.expected if r not in held] if None not in held else []
    dump = HANG[0][1]
    if absent:
        who = ", ".join(str(r) for r in absent[:8])
        return ((f"the stacks of the ranks that no dump shows: {who}", dump), *served[1:])
    if any(NATIVE.search(f.function) for d in found for f in d.frames):
        return served[1:]
    return (("the native frames below the Python stacks that the log holds", dump), *served[1:])


def steps_for_symptom(case: Case, group: Sequence[Case]) -> list[NextStep]:
    """Steps for a stated symptom: cheap experiments that no launch of `group` has tried, then what to collect."""
    symptom = case.symptom or ""
    steps: list[NextStep] = []
    for step, settles in _TRY.get(symptom, ()):
        for change in check_changes((step,), case.launch.version)[:1]:
            runs = change[0].kind in ("flag", "env")
            off = step.op == "remove" and not _on(case, step)
            if runs and not off and not any(has_step(c.launch, change[0]) for c in group):
                steps.append(experiment(case, change, [], settles))
    wanted = COLLECT.get(symptom, ())
    return [*steps[:2], *(NextStep(kind="datum", do=f"collect {what}", command=cmd) for what, cmd in wanted)]


def _on(case: Case, step: FixStep) -> bool:
    fact = case.launch.facts.get("args." + step.name.removeprefix("--").replace("-", "_"))
    return fact is not None and fact.value not in (None, False, "")
