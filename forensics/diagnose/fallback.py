"""What to do where no known cause fits: one cheap step that tells more, from the failing part and the settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from forensics.diagnose.relaunch import experiment, text_of
from forensics.diagnose.switches import switches_of
from forensics.diagnose.titles import NO_MESSAGE, message_of
from forensics.rulebook.case import Case
from forensics.schema.finding import FixStep
from forensics.schema.launch import Failure
from forensics.schema.report import NextStep

_KEY = re.compile(r"KeyError: '([\w.]{3,200})'")
_NAMED = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"|`[^`]{0,200}`")
_ROOM = re.compile(r"bootstrap_room[=:]\s?(\d{1,20})")
_DATA_ERROR = re.compile(
    r"^(?:[\w.]+\.)?(?:KeyError|IndexError|ValueError|TypeError|AttributeError|AssertionError|RuntimeError|RecursionError)\b"
)
_CORE = frozenset(
    {
        "model", "model-path", "tokenizer-path", "tp", "tp-size", "tensor-parallel-size", "dp", "dp-size", "pp-size",
        "ep-size", "nnodes", "node-rank", "dist-init-addr", "quantization", "trust-remote-code", "host", "port",
        "device", "dtype", "disaggregation-mode", "mem-fraction-static", "context-length", "served-model-name",
        "enable-dp-attention", "data-parallel-size", "pipeline-parallel-size", "expert-parallel-size", "api-key",
    }
)  # fmt: skip
"""Flags without which it would be another server."""
_SERVING = ("prefill", "decode", "idle")
FEW = 2


def steps_for_unknown(case: Case, failure: Failure, group: Sequence[Case]) -> list[NextStep]:
    """Steps for a failure that nothing explains, best first; none that a launch of `group` has tried."""
    found: list[NextStep] = []
    if failure.stage == "client":
        return [_request(failure)]
    if message_of(failure.text) == NO_MESSAGE:
        do = "give the rest of the log, and the logs of the other ranks: the trace ends before its exception"
        return [NextStep(kind="datum", do=do, settles="the exception itself")]
    if failure.component == "kv-transfer":
        found += _other_side(case, failure)
    if failure.component == "loader" or (failure.component == "quantization" and failure.stage == "load"):
        found += _tensor(case, failure)
    for name, change in switches_of(case, failure, group):
        settles = f"passes: {name} is part of the cause; same failure: {name} is cleared"
        found.append(experiment(case, change, [], settles))
    if failure.stage in _SERVING and _DATA_ERROR.match(failure.text) and len(found) < FEW:
        found.append(_replay(case, failure))
    if failure.component in ("tokenizer", "config") and failure.stage not in _SERVING:
        found.append(_files(case, failure))
    if not found:
        found += _minimal(case)
    if len(found) < FEW and not failure.mechanism.startswith("divergence") and (words := searchable(failure.text)):
        command = f"gh search issues --repo sgl-project/sglang {shlex.quote(words)}"
        found.append(NextStep(kind="datum", do="look for reports with the message's own words", command=command))
    return found


def searchable(text: str) -> str:
    """Words of a message that another report would have as well: no numbers, paths, addresses or quoted names; "" where
    fewer than three are left."""
    line = text.strip().split("\n", 1)[0][:400]
    tokens = _NAMED.sub(" ", message_of(line, 400)).split()
    plain = [t.strip(".,:;()[]{}<>=") for t in tokens if not any(c.isdigit() or c in "/\\@" for c in t)]
    words = [w for w in plain if len(w) > 2 and w.replace("_", "").replace(".", "").replace("-", "").isalpha()]
    return " ".join(words[:7]) if len(words) >= 3 else ""


def _files(case: Case, failure: Failure) -> NextStep:
    """Start-up failed in what reads the model's own files."""
    path = case.launch.facts.get("args.model_path")
    folder = str(path.value) if path is not None and str(path.value).startswith("/") else "MODEL_FOLDER"
    names = ("tokenizer_config.json", "chat_template.jinja") if failure.component == "tokenizer" else ("config.json",)
    command = "head -c 3000 " + " ".join(shlex.quote(f"{folder}/{n}") for n in names)
    settles = "whether the model's own file has what the frame wants"
    do = f"read {' and '.join(names)} of the model where the innermost frame reads it, and compare with the hub's copy"
    return NextStep(kind="datum", do=do, command=command, settles=settles)


def _request(failure: Failure) -> NextStep:
    return NextStep(
        kind="experiment",
        do="send the failing request again by itself: the server goes on, so the message is about the request (its "
        "template, length, parameters or images)",
        settles=f"whether this request alone gives: {failure.text.splitlines()[0][:120]}",
    )


def _replay(case: Case, failure: Failure) -> NextStep:
    logs = (FixStep("flag", "set", "--log-requests"), FixStep("flag", "set", "--log-requests-level", "2"))
    what = "the schema or tool call" if failure.component == "grammar" else "the request"
    step = experiment(case, logs, [], "whether one request brings the failure back: it is about its data, not the load")
    return step.model_copy(
        update={"do": f"find {what} that ran in that second ({text_of(logs)} logs them) and send it alone"}
    )


def _other_side(case: Case, failure: Failure) -> list[NextStep]:
    """Each side of a disaggregated pair tells half of a failed transfer."""
    role = case.launch.facts.get("launch.role")
    other = {"prefill": "decode", "decode": "prefill"}.get(str(role.value) if role else "", "other")
    texts = [failure.text, *(f.text for f in case.launch.failures[:8])]
    room = next((m.group(1) for t in texts if (m := _ROOM.search(t))), None)
    if room is None:
        do = f"read the {other} server's log at the time of this failure: it states the other half"
        return [NextStep(kind="datum", do=do)]
    do = f"look for the same bootstrap room in the {other} server's log: it states the other half"
    return [NextStep(kind="datum", do=do, command=f"grep -n {room} {other}.log")]


def _tensor(case: Case, failure: Failure) -> list[NextStep]:
    """A tensor that the loader cannot place: the checkpoint, the quantization, or the split over ranks."""
    facts = case.launch.facts
    found: list[NextStep] = []
    for flag, off in (("pp_size", "1"), ("ep_size", "1")):
        fact = facts.get(f"args.{flag}")
        if fact is not None and isinstance(fact.value, int) and fact.value > 1 and _KEY.search(failure.text):
            step = FixStep("flag", "set", f"--{flag.replace('_', '-')}", off)
            found.append(experiment(case, (step,), [], "passes: this split over ranks loses the tensor"))
            break
    key = _KEY.search(failure.text)
    named = f"`{key.group(1)}`" if key else "the tensor of the failing frame"
    quantization = facts.get("args.quantization") or facts.get("weights.quantization")
    kind = f" (this launch: {quantization.value})" if quantization is not None and quantization.value else ""
    path = facts.get("args.model_path")
    where = str(path.value) if path is not None and str(path.value).startswith("/") else "MODEL_FOLDER"
    command = f"grep -A15 quantization_config {shlex.quote(where + '/config.json')}"
    if key:
        layer = key.group(1).rsplit(".", 1)[-1]
        command += f"; grep -m3 {shlex.quote(layer)} {shlex.quote(where + '/model.safetensors.index.json')}"
    do = (
        f"compare {named} with the checkpoint: quantization_config of config.json{kind}, the layers that it leaves "
        "out, and the names in the weight index"
    )
    found.append(
        NextStep(
            kind="datum",
            do=do,
            command=command,
            settles="the name is in the index: this release lacks it for the architecture; it is not: the checkpoint "
            "is of another quantization",
        )
    )
    return found


def _minimal(case: Case) -> list[NextStep]:
    """Halve the settings: the model with its parallel sizes alone, where the command has more than that."""
    fact = case.launch.facts.get("launch.command")
    try:
        words = shlex.split(str(fact.value)) if fact is not None and fact.value else []
    except ValueError:
        return []
    kept: list[str] = []
    dropped: list[str] = []
    keeping = True
    for word in words:
        if word.startswith("--"):
            keeping = word[2:].split("=", 1)[0].replace("_", "-") in _CORE
            if not keeping:
                dropped.append(word.split("=", 1)[0])
        if keeping:
            kept.append(word)
    if len(dropped) < FEW or not any("sglang" in w for w in kept):
        return []
    return [
        NextStep(
            kind="experiment",
            do=f"relaunch with the model and its parallel sizes alone (without {', '.join(dropped[:6])}"
            f"{' …' if len(dropped) > 6 else ''}); if it passes, put half of the flags back",
            command=shlex.join(kept),
            settles="passes: one of the flags is part of the cause; same failure: none of them is",
        )
    ]
