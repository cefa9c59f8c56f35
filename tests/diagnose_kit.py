"""Small knowledge bases and logs for tests of the diagnosis: real rules, own findings, the whole pipeline."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from forensics.analysis import read, report
from forensics.knowledge.deployment import check_deployment
from forensics.knowledge.finding import check_finding
from forensics.knowledge.store import Knowledge, load
from forensics.schema.options import Options
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report

ARGS = (
    "[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/models/dense', tokenizer_path='/models/dense', "
    "dtype='{dtype}', kv_cache_dtype='{kv}', quantization=None, tp_size=1, dp_size=1, pp_size=1, nnodes=1, "
    "node_rank=0, port={port}, random_seed={seed}, attention_backend='{backend}', disable_cuda_graph={graphs}, "
    "moe_runner_backend='auto', moe_a2a_backend='none', device='cuda')"
)
START = """[2026-05-01 10:00:05] Init torch distributed begin.
[2026-05-01 10:00:06] Init torch distributed ends. mem usage=0.10 GB
[2026-05-01 10:00:07] Load weight begin. avail mem=78.20 GB
[2026-05-01 10:00:20] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=60.20 GB, mem usage=18.00 GB.
[2026-05-01 10:00:21] Memory pool end. avail mem=8.10 GB
"""
READY = """[2026-05-01 10:00:40] The server is fired up and ready to roll!
[2026-05-01 10:00:50] Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,
"""
SERVES = """[2026-05-01 10:00:52] Decode batch, #running-req: 4, #token: 900, token usage: 0.01, gen throughput (token/s): 200.10, #queue-req: 0,
[2026-05-01 10:00:55] INFO:     127.0.0.1:47429 - "POST /generate HTTP/1.1" 200 OK
[2026-05-01 10:00:58] Decode batch, #running-req: 4, #token: 990, token usage: 0.01, gen throughput (token/s): 210.10, #queue-req: 0,
"""
NAN = """/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel: block: [0,0,0], thread: [0,0,0] Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed.
[2026-05-01 10:00:51] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2974, in run_scheduler_process
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler_output_processor_mixin.py", line 365, in process_batch_result_decode
torch.AcceleratorError: CUDA error: device-side assert triggered

[2026-05-01 10:00:52] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
Killed
"""
FINDING = """---
id: {id}
title: {title}
category: numerics
status: {status}
versions: "{versions}"
applies: {applies}
grounds:
  must: {must}
  decisive: {decisive}
  strong: {strong}
  weak: {weak}
  against: {against}
  excludes: {excludes}
explains: {explains}
shows: {shows}
symptoms: {symptoms}
look_alikes: {look_alikes}
fix: {fix}
verify: ["the same load passes"]
sources: ["run:test"]
log_evidence: {evidence}
---
# {title}

## What one sees
## What happens
## How to tell it from look-alikes
## Fix
## History
"""
LISTS = (
    "applies",
    "must",
    "decisive",
    "strong",
    "weak",
    "against",
    "excludes",
    "explains",
    "shows",
    "symptoms",
    "look_alikes",
    "fix",
)


def launch_text(
    body: str, *, dtype: str = "auto", kv: str = "auto", graphs: bool = False, backend: str = "triton", seed: int = 1
) -> str:
    """One launch: its arguments, the start of the server, then `body`. `graphs` is disable_cuda_graph; a launch starts
    an hour after the one whose `seed` is one lower."""
    head = ARGS.format(dtype=dtype, kv=kv, graphs=graphs, backend=backend, port=30000 + seed, seed=seed)
    return f"{head}\n{START}{READY}{body}".replace("2026-05-01 10:", f"2026-05-01 {9 + seed:02}:")


def write(folder: Path, name: str, text: str) -> str:
    """A log file of a test."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def finding(folder: Path, name: str, **keys: object) -> Path:
    """A finding's file; keys not given are empty."""
    values: dict[str, object] = {key: [] for key in LISTS}
    values |= {"title": f"Finding {name}", "status": "confirmed", "versions": "", "evidence": "rendered"}
    values |= keys
    path = folder / f"{name}.md"
    path.write_text(FINDING.format(id=name, **values), encoding="utf-8")
    return path


@cache
def rules() -> Knowledge:
    """The shipped knowledge (for its rules)."""
    return load()


def knowledge(*files: Path, deployments: tuple[Path, ...] = ()) -> Knowledge:
    """Real rules with these findings only."""
    found = []
    for path in files:
        item, problems = check_finding(path)
        assert item is not None, problems
        found.append(item)
    good = [d for d, _ in map(check_deployment, deployments) if d is not None]
    return replace(rules(), findings=tuple(found), deployments=tuple(good))


def diagnose(names: list[str], known: Knowledge, **options: object) -> Report:
    """The whole pipeline with this knowledge."""
    chosen = Options(**options)  # type: ignore[arg-type]
    return report(read(names, chosen, known), chosen, known)


def focus(found: Report) -> LaunchInfo:
    """The launch of the headline."""
    return next(x for x in found.launches if x.id == found.focus)


def verdicts(found: Report) -> dict[str, str]:
    """Verdict by finding (or title), best first."""
    return {h.finding or h.title: h.verdict for h in focus(found).hypotheses}


def hypothesis(found: Report, name: str) -> HypothesisInfo:
    """The hypothesis of a finding."""
    return next(h for h in focus(found).hypotheses if h.finding == name)
