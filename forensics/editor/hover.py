"""What a word of a finding or a rule means: signal, cause, fact, flag, variable, form of a condition."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from forensics.knowledge.library import Library
from forensics.knowledge.names import CLOSED
from forensics.knowledge.search import asking
from forensics.schema.finding import Deployment, Finding
from forensics.schema.signal import Rule
from forensics.timeline.catalog import Catalog

FORMS = {
    "before": "`a before b`: the first `a` stands before the first `b`.",
    "absent": "`absent a on the failing rank`: true only where the log covers that rank and stage, else unknown.",
    "every": "`a on every rank`: over the expected ranks; an unseen rank makes it unknown.",
    "some": "`a on some rank`: at least one rank showed it.",
    "one": "`a on one rank`: exactly one rank showed it.",
    "failing": "`a on the failing rank`: the rank of the first failure showed it.",
    "known": "`known env.NAME`: the log states the fact.",
    "count": "`count a >= 3 within 60s`: matches, folded floods counted in full.",
    "silence": "`silence > 9min on some rank before a`: a gap that is long against the launch's own rhythm.",
    "symptom": "`symptom garbage`: the user stated it (`--symptom`).",
    "tried": "`tried --flag=value and same failure`: an earlier launch, or the history, had it and failed alike.",
    "series": "`series throughput falls`, `series accept_len <= 1.05`: over the batch metrics.",
    "reached": "`stage reached warmup`: how far the launch got.",
    "ended": "`ended = hung`: how the launch ended.",
    "must": "Without it the cause is no candidate. Unknown: at most possible.",
    "decisive": "The program names the cause, or a single changed variable shows it.",
    "strong": "Raises a candidate to likely.",
    "weak": "Helps to rank, raises nothing.",
    "against": "Speaks against the cause.",
    "excludes": "Rules the cause out.",
    "applies": "Facts of a launch that could have the fault at all: for ruling out and for risks.",
    "versions": "Releases that can have the fault, such as `>=0.5.7,<0.5.10`; an empty text is any.",
    "explains": "Signals whose failure this cause explains (default: the root signals of must and decisive).",
    "shows": "A signal that would be seen once a stage is passed: the ground for ruling the cause out.",
    "symptoms": "Silent forms: what the user sees without any error line.",
    "look_alikes": "Causes with the same symptom; each names the other.",
    "verify": "What a relaunch must show.",
    "log_evidence": "real, rendered, or none (none caps the verdict at possible).",
    "kinds": "Line kinds that the rule looks at; see docs/kinds.md.",
    "frames": "RE2: one frame of the block around the line must match.",
    "innermost": "RE2: the innermost frame of the exception that the line states must match.",
    "exception": "RE2: type of the exception whose block holds the line.",
    "mechanism": "Why a number, path or model name in the pattern is the mechanism itself.",
    "lifetime": "Releases that print the message; its absence elsewhere proves nothing.",
    "root": "States a fault that can be the first one.",
    "cascade": "The speaker waited for, or lost, a peer.",
    "teardown": "Clean-up after a death.",
    "advice": "Text that proposes something; never a cause.",
    "progress": "Proves that the server went on.",
}
"""In the words of docs/conditions.md, docs/findings.md and docs/rules.md."""


def hover(word: str, lib: Library) -> str:
    """Markdown about a word, empty where nothing is known of it."""
    rule = lib.rules.get(word) or lib.rules.get(word.rpartition(".")[0])
    if rule is not None:
        return _rule(rule, word, lib)
    if word in lib.findings:
        return _finding(lib.findings[word])
    known = next((d for d in lib.knowledge.deployments if d.id == word), None)
    if known is not None:
        return _deployment(known)
    group, dot, rest = word.partition(".")
    if dot and rest:
        return _fact(group, rest, lib.catalog)
    if word.startswith("--"):
        return _flag(word, lib.catalog)
    if word in lib.catalog.env:
        return _variable(word, lib.catalog)
    return FORMS.get(word, "")


def _rule(rule: Rule, word: str, lib: Library) -> str:
    lines = [f"**{rule.id}** · signal, {rule.role}, {rule.family}", "", rule.title]
    capture = dict(rule.captures).get(word.rpartition(".")[2]) if word != rule.id else None
    if capture:
        lines += ["", f"capture `{word.rpartition('.')[2]}`: {capture}"]
    if rule.docs:
        lines += ["", rule.docs]
    lines += ["", "```re2", *rule.patterns[:6], "```"]
    if rule.first or rule.last:
        lines.append(f"printed from {rule.first or 'the first'} to {rule.last or 'the newest'} release")
    if rule.captures:
        lines.append("captures: " + ", ".join(f"`{name}` ({kind})" for name, kind in rule.captures))
    used = [f.id for f in asking(rule.id, lib)]
    if used:
        lines += ["", f"asked for by {len(used)}: " + ", ".join(used[:8]) + (" …" if len(used) > 8 else "")]
    return "\n".join(lines)


def _finding(found: Finding) -> str:
    must = [f"- `{c.text}`" for c in found.grounds if c.strength == "must"]
    lines = [f"**{found.id}** · {found.category}, {found.status}", "", found.title]
    if found.versions:
        lines += ["", f"releases {found.versions}"]
    lines += ["", "must:", *must] if must else []
    steps = [f"- {s.op} {s.name}{'=' + s.value if s.value else ''}{s.do}".replace("-  ", "- ") for s in found.fix]
    lines += ["", "fix:", *steps] if steps else []
    seen = re.search(r"## What one sees\s+(.+?)(?:\n\n|\Z)", found.body, re.S)
    if seen:
        lines += ["", seen.group(1).strip()[:600]]
    return "\n".join(lines)


def _deployment(known: Deployment) -> str:
    lines = [f"**{known.id}** · known-good launch ({known.strength})", "", known.title]
    facts = [known.gpu and f"{known.gpu_count or ''} {known.gpu}".strip(), known.quantization, known.model]
    return "\n".join([*lines, "", ", ".join(f for f in facts if f)])


def _fact(group: str, rest: str, book: Catalog) -> str:
    if group == "args":
        flag = book.by_dest.get(rest)
        head = f"**args.{rest}** · field of server_args"
        return f"{head}\n\n{_flag(flag, book)}" if flag else head
    if group == "env":
        return _variable(rest, book)
    if rest in CLOSED.get(group, ()):
        return f"**{group}.{rest}** · fact\n\n{_facts_page().get(group, '')}"
    return ""


@cache
def _facts_page() -> dict[str, str]:
    return {
        "gpu": "What check_env, nvidia-smi or messages say about the GPUs; `gpu.sm` 120 is compute capability 12.0.",
        "version": "`version.sglang` is an interval: true or false only if the whole interval decides.",
        "weights": "As the checkpoint or a message says.",
        "model": "From model_path and the messages about the model's config.",
        "kv": "The KV cache as allocated.",
        "launch": "The command, the expected ranks (tp × pp, × dp for replicas), nodes, device and role.",
        "host": "`host.topology` is nvlink or pcie.",
        "feature": "A boolean derived from the other facts.",
    }


def _flag(name: str, book: Catalog) -> str:
    found = book.flag(name)
    if found is None:
        return ""
    main, entry = found
    lines = [f"**{main}** · sglang flag, {entry.get('type') or 'switch'}"]
    lines.append(f"\nin releases {_life(entry)}" + (f", field `{entry['dest']}`" if entry.get("dest") else ""))
    default = book.default(main, book.newest)
    if default is not None:
        lines.append(f"\ndefault in {book.newest}: `{default}`")
    choices = book.choices(main, book.newest)
    if choices:
        lines.append("\nvalues: " + ", ".join(f"`{c}`" for c in sorted(choices)))
    if entry.get("renamed_to"):
        lines.append(f"\nrenamed to `{entry['renamed_to']}`")
    if main != name:
        lines.append(f"\n`{name}` is another spelling of it")
    return "\n".join(lines)


def _variable(name: str, book: Catalog) -> str:
    entry = book.env.get(name)
    if entry is None:
        return f"**env.{name}** · environment variable, as the log states it"
    text = f"**{name}** · environment variable\n\nin releases {_life(entry)}"
    return text + (f"\n\nrenamed to `{entry['renamed_to']}`" if entry.get("renamed_to") else "")


def _life(entry: dict[str, Any]) -> str:
    return f"{entry['first']} to {entry['last']}" if entry.get("last") else f"{entry['first']} and later"
