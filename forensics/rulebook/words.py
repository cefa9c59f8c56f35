"""The closed vocabularies of rule and finding files. Line kinds are those of docs/kinds.md."""

from __future__ import annotations

import re

from forensics.schema.launch import PHASES, STAGES

FAMILIES = (
    "numerics",
    "memory",
    "kernel",
    "compile",
    "distributed",
    "load",
    "config",
    "runtime",
    "disaggregation",
    "network",
    "tokenizer",
    "host",
    "performance",
)
CATEGORIES = (*FAMILIES, "hang", "hardware", "kernel-arch", "kernel-compile", "version", "client")
"""What a finding is about: a rule family, or one of the words that only causes have."""
RULE_ROLES = ("root", "cascade", "teardown", "advice", "warning", "progress", "info")
SEVERITIES = ("error", "warning", "info")
SCOPES = ("rank", "process")
CAPTURE_TYPES = ("int", "float", "size", "duration", "rank", "str")
STAGE_WORDS = STAGES + PHASES
KINDS = (
    "decode-batch",
    "prefill-batch",
    "access",
    "uvicorn",
    "server-args",
    "command",
    "stage-mark",
    "progress",
    "traceback-head",
    "frame",
    "frame-source",
    "exception",
    "chain",
    "cuda-assert",
    "cuda-advice",
    "pg-watchdog",
    "cxx-log",
    "cxx-frame",
    "cxx-abort",
    "faulthandler",
    "py-spy",
    "nccl",
    "gloo",
    "transport",
    "sigquit",
    "exit",
    "argparse",
    "python-warning",
    "compile",
    "router",
    "ray",
    "request-dump",
    "env-report",
    "nvidia-smi",
    "advice",
    "warning",
    "info",
    "error",
    "debug",
    "message",
    "shell",
    "blank",
    "text",
)
FACT_GROUPS = ("args", "env", "gpu", "version", "weights", "model", "kv", "host", "launch", "feature")
ID = re.compile(r"(?:[a-z][a-z0-9]*/)?[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
SOURCE = re.compile(
    r"(?:https?://[^\s/]+/\S+|[\w.-]+/[\w.-]+#\d+|[\w.-]+/[\w.-]+@[\w./-]+|(?:run|paper|docs|book):\s*\S.*)"
)
