"""What became of flags and variables: notices in the source, and pairs checked by hand."""

import itertools
import re

# Renames without any fallback or notice in the source; each was checked by hand (adjacent
# releases, same type/choices/field meaning).  "!" marks an inverted meaning.
INFERRED = {
    "--disable-regex-jump-forward": "--disable-jump-forward",
    "--max-torch-compile-bs": "--torch-compile-max-bs",
    "--disable-disk-cache": "--disable-outlines-disk-cache",
    "--file-storage-pth": "--file-storage-path",
    "--enable-llama4-multimodal": "--enable-multimodal",
    "--impl": "--model-impl",
    "--enable-flashinfer-moe": "--enable-flashinfer-cutlass-moe",
    "--max-micro-batch-size": "--pp-max-micro-batch-size",
    "--nsa-prefill": "--nsa-prefill-backend",
    "--nsa-decode": "--nsa-decode-backend",
    "--oltp-traces-endpoint": "--otlp-traces-endpoint",
    "--kt-amx-weight-path": "--kt-weight-path",
    "--kt-amx-method": "--kt-method",
    "--enable-flashinfer-autotune": "!--disable-flashinfer-autotune",
    "--enable-deepep-waterfill": "--enable-waterfill",
    "--optimistic-prefill-retries": "--optimistic-prefill-attempts",
}
INFERRED["--enable-beta-spec"] = "SGLANG_ENABLE_SPEC_V2=1"
INFERRED_ENV = {}
TYPOS = {"--sampling-backend=pytroch": "--sampling-backend=pytorch"}  # misspelt in sglang itself
# Values of one flag that were renamed without notice (same kernels are called).
INFERRED_VALUES = {
    "--nsa-prefill": {"flashmla_prefill": "flashmla_sparse", "flashmla_decode": "flashmla_kv"},
    "--nsa-decode": {"flashmla_prefill": "flashmla_sparse", "flashmla_decode": "flashmla_kv"},
}
# Notices that name another switch but are no rename.
NOT_A_RENAME = {
    "SGLANG_ENABLE_SPEC_V2",
    "SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS",
    "SGLANG_DSPARK_FOLDED_SAMPLING",
    "SGLANG_ENABLE_HICACHE_BUFFER_ANCHOR_LOCK",
    "SGLANG_DFLASH_PREFILL_REFILL_TARGET",
}

DEPRECATED = re.compile(r"deprecat|no longer supported|^removed\b|has been removed", re.I)
SUBJECT = re.compile(
    r"(--[a-z][\w-]*|\bSGL(?:ANG)?_[A-Z0-9_]+)((?:=| )[\w.]+)?['`\"]?(?: and (SGL(?:ANG)?_[A-Z0-9_]+))?"
    r"(?: \(deprecated\))?(?: option)? (?:is|are|will be|has been|argument is)?\s*(?:now )?(?:deprecated|no longer supported|removed\b)"
)
TARGET = re.compile(
    r"(?:use|using|set|alias (?:for|of)|switch to|replaced by|via)(?: the)?(?: new)?(?: explicit)? ['`\"]?"
    r"(--[a-z][\w{},-]*|SGL(?:ANG)?_[A-Z0-9_]+)((?:=| )[\w<>|-]+)?['`\"]?(?: to ['\"`]([\w-]+)['\"`])?",
    re.I,
)
ALSO = re.compile(r"(?:and/or|and|or) ['`\"]?(--[a-z][\w-]*|SGL(?:ANG)?_[A-Z0-9_]+)(=[\w]+)?")


def target_of(text, not_this=None):
    """The replacement that a notice names: '--flag', '--flag=value', 'ENV=value' or None."""
    for m in TARGET.finditer(text or ""):
        name, val, to = m.groups()
        if name == not_this:
            continue
        quoted = m.group(0)
        value = to or (val.strip("= ") if val and (val[0] == "=" or re.search(r"['`\"]--", quoted)) else None)
        if val and val[0] == " " and not to and not re.search(r"['`\"]--[\w-]+ [\w-]+['`\"]", quoted):
            value = "recover" if val.strip() == "recover" else None
        name = name.rstrip("-")
        first = name + (f"={value}" if value and not value.startswith(("<", "auto|")) else "")
        if "|" in first:
            first = name
        rest = ALSO.match(text[m.end() :].lstrip(" '`\""))
        return first + (f" + {rest.group(1)}{rest.group(2) or ''}" if rest else "")
    return None


def expand(t):
    """'--a-{x,y}=v' -> '--a-x=v + --a-y=v'"""
    m = re.match(r"(.*)\{(\w+),(\w+)\}(.*)$", t or "")
    return f"{m[1]}{m[2]}{m[4]} + {m[1]}{m[3]}{m[4]}" if m else re.sub(r" <[\w-]+>$", "", t) if t else t


CATEGORY = (
    ("speculative", r"^speculative|^enable-(?:eagle|multi-layer|beta)|accept-threshold"),
    ("quantization", r"quant|torchao|modelopt|fp8-gemm|fp4-gemm|fp32-lm"),
    ("cuda-graph", r"cuda-graph|torch-compile|piecewise"),
    (
        "pd",
        r"disaggregation|pdlb|prefill-round-robin|encoder|language-only|optimistic-prefill|mooncake-ib|num-reserved",
    ),
    ("hicache", r"hicache|hierarchical|lmcache|hisparse|storage-backend|flexkv"),
    ("lora", r"lora"),
    ("multimodal", r"multimodal|^mm-|image|limit-mm|vision"),
    ("moe", r"moe|expert|eplb|deepep|waterfill|^ep-|two-batch|tbo"),
    ("parallel", r"dp-attention|^attn-|attention-data|attention-context"),
    ("attention", r"attention|flashinfer-mla|flashmla|nsa|dsa|mla|triton-attention|chunked-prefix"),
    ("mamba", r"mamba|linear-attn|gdn"),
    (
        "parallel",
        r"parallel|tp-size|dp-size|pp-|nnodes|node-rank|nccl|dist-|all-?reduce|load-balance|mscclpp|p2p|base-gpu|gpu-id|numa|cp-|symm",
    ),
    ("memory", r"mem-|max-total|max-running|page-size|kv-cache|cpu-offload|swa|hybrid|radix|memory|offload"),
    ("schedule", r"schedul|chunked|prefill|queue|priority|conservative|decode-steps|overlap|mixed|retract|sleep"),
    ("grammar", r"grammar|constrained|jump-forward|outlines|xgrammar"),
    ("parser", r"parser|chat-template|completion-template|tool-"),
    ("load", r"load|model-path|tokenizer|revision|trust|download|dtype|context-length|config|model-impl|weight"),
    ("observability", r"log|metric|trace|bucket|report|watch|debug|dump|profile|crash|health|nan"),
    ("dllm", r"dllm"),
    ("sampling", r"sampling|penal|logit"),
    ("attention", r"^ds-|double-sparsity|flashinfer"),
    ("moe", r"^kt-"),
    ("grammar", r"disk-cache"),
    ("parallel", r"micro-batch"),
    ("observability", r"histogram|canary"),
    (
        "server",
        r"sigquit|multi-item|host|port|api-key|ssl|http|grpc|timeout|warmup|url|stream|file-storage|served|cache-report",
    ),
)


def category(flag, ns):
    for name, rx in CATEGORY:
        if re.search(rx, flag[2:]):
            return name
    if ns:
        return {
            "exec.graph": "cuda-graph",
            "spec": "speculative",
            "disagg": "pd",
            "mm": "multimodal",
            "exec.moe": "moe",
            "exec.mamba": "mamba",
            "exec.comm": "parallel",
            "model": "load",
            "serving": "server",
        }.get(ns, ns.split(".")[-1])
    return "other"


def timeline(pairs):
    """[(version, value)] -> only the changes."""
    out = []
    for v, x in pairs:
        if not out or out[-1]["value"] != x or type(out[-1]["value"]) is not type(x):
            out.append({"since": v, "value": x})
    return out


def span(vs, present):
    """first, last (None = still there), gaps [[first missing, next present]]"""
    idx = sorted(vs.index(v) for v in present)
    gaps = [[vs[a + 1], vs[b]] for a, b in itertools.pairwise(idx) if b != a + 1]
    return vs[idx[0]], (None if idx[-1] == len(vs) - 1 else vs[idx[-1]]), gaps


def notices(vs, scans):
    """Deprecation notices in the code: {subject: {"since":, "to":}}, and the same for single values."""
    subj, values, _envs = {}, {}, {}
    for v in vs:
        for _f, fact in scans[v]:
            for lvl, t, _ in fact["strs"]:
                if not DEPRECATED.search(t) or lvl == "prefix":
                    continue
                for m in SUBJECT.finditer(t):
                    name, val, second = m.groups()
                    to = target_of(t[m.end() :], name)
                    if name.startswith("--") and val and val[0] == "=" and "on this hardware" not in t:
                        new = target_of(t[m.end() :])
                        if new and new.startswith(name + "="):
                            values.setdefault(name, {})[val[1:]] = {"to": new.split("=")[1], "since": v}
                        continue
                    if name.startswith("--") and val:
                        continue
                    for n in filter(None, (name, second)):
                        d = subj.setdefault(n, {"since": v, "to": None})
                        if "no longer supported" in t and lvl == "raise":
                            d.setdefault("rejected", v)
                        if "has been removed" in t:
                            d.setdefault("ineffective", v)
                        d["to"] = expand(to) or d["to"]
                m = re.match(r"The option '(--[\w-]+)' will be deprecated", t)
                if m:
                    subj.setdefault(m[1], {"since": v, "to": target_of(t[m.end() :])})
    # `old` in values["since"] should be the first version: recompute
    for flag, d in values.items():
        for old, x in d.items():
            x["since"] = next(
                v for v in vs for f, fact in scans[v] for _, t, _ in fact["strs"] if f"{flag}={old} is deprecated" in t
            )
    return subj, values
