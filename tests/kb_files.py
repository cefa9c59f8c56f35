"""A small knowledge base on disk, for the tests of knowledge, lint and the kb tools."""

from __future__ import annotations

from pathlib import Path

from forensics.knowledge.library import Library, library
from forensics.knowledge.store import load
from forensics.schema.options import Options

CRASH = """\
[2026-11-30 09:57:04 TP0] Load weight end. elapsed=0.12 s, type=Qwen2ForCausalLM, avail mem=133.48 GB, mem usage=0.03 GB.
[2026-11-30 09:58:05 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/acme/plugin.py", line 88, in _hook
    hidden = output[0] + self.vector
acme.errors.WidthError: the vector has width 4096 but hidden states have width 5120

"""
"""The log of a launch that died of what no finding knows."""
RULE = """id: widget-jam
title: The widget jams
match:
  any:
    - 'widget (?P<n>\\d+) is jammed'
captures: {n: int}
role: root
docs: A widget stopped turning.
"""

FINDING = """---
id: widget-without-oil
title: The widget runs without oil
category: runtime
status: confirmed
versions: ">=0.5.5"
grounds:
  must:
    - widget-jam
    - args.tp_size = 2
  strong:
    - widget-jam on every rank
explains: [widget-jam]
fix:
  - {kind: flag, op: set, name: --tp-size, value: "1", runnable: true}
verify:
  - the widget turns
sources: [sgl-project/sglang#1]
log_evidence: rendered
---
# The widget runs without oil

## What one sees

A jam on every rank.

```log match line=2
[2026-01-05 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=2, dp_size=1)
[2026-01-05 10:00:09 TP0] ValueError: widget 3 is jammed
[2026-01-05 10:00:09 TP1] ValueError: widget 4 is jammed
```

## What happens

No oil.

## How to tell it from look-alikes

The widget turns with oil.

```log near-miss
[2026-01-05 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=2, dp_size=1)
[2026-01-05 10:00:09 TP0] ValueError: widget 3 is squeaking
```

## Fix

Oil it.
"""

DEPLOYMENT = """---
id: known-good
title: A launch that works
strength: served
hardware: {gpu: H200, count: 8, sm: 90, nodes: 1}
quantization: fp8
model: {name: m, architecture: DeepseekV3ForCausalLM}
features: [mla, moe]
versions: "0.5.8"
args: {tp_size: 8}
env: {NCCL_DEBUG: INFO}
facts: {kv.dtype: torch.bfloat16}
warnings: [widget-jam]
sources: [sgl-project/sglang#2]
---
It works.
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def small_base(folder: Path) -> Path:
    """kb/ with one rule, one finding and one deployment; gives the kb folder."""
    write(folder / "kb" / "rules" / "runtime" / "widget-jam.yaml", RULE)
    write(folder / "kb" / "findings" / "widget-without-oil.md", FINDING)
    write(folder / "kb" / "deployments" / "known-good.md", DEPLOYMENT)
    return folder / "kb"


def finding_file(kb: Path) -> Path:
    return kb / "findings" / "widget-without-oil.md"


def rule_file(kb: Path) -> Path:
    return kb / "rules" / "runtime" / "widget-jam.yaml"


def lib_of(kb: Path) -> Library:
    """The shipped knowledge with a base beside it."""
    return library(load(Options(kb=(kb,))))
