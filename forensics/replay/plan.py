"""From hypothesis to changed command: which steps replay can apply, what the diff is, what will be verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from forensics.errors import ReplayError
from forensics.replay.base import Base
from forensics.replay.edits import Change, change_command, main_spelling, read_server
from forensics.schema.report import FixInfo, HypothesisInfo, LaunchInfo
from forensics.timeline.catalog import catalog

SAFE_ENV_PREFIXES = (
    "SGLANG_", "SGL_", "NCCL_", "GLOO_", "TORCH_", "PYTORCH_", "CUDA_", "FLASHINFER_", "TRITON_", "NVSHMEM_", "UCX_",
    "MC_", "DG_", "VLLM_", "OMP_", "MKL_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "DEEPEP_", "MOONCAKE_",
)  # fmt: skip
"""Variables of the server's own stack. Others must be allowed by name: a fix may not set, say, LD_PRELOAD or PATH."""
_UNSAFE_ENV = frozenset({"HF_TOKEN", "HF_HOME", "HF_ENDPOINT", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "CUDA_HOME"})


@dataclass(frozen=True, slots=True)
class Plan:
    """`before` and `after` are the whole commands. `by_hand` are steps that replay does not do, as sentences."""

    base: Base
    changes: tuple[Change, ...]
    before: str
    after: str
    by_hand: tuple[str, ...] = ()
    finding: str | None = None
    title: str = ""
    verify: tuple[str, ...] = ()

    def diff(self) -> list[tuple[str, str]]:
        """Word-level diff as (`=`, `+` or `-`, text) pieces; joining `=` and `+` gives `after` byte for byte."""
        old, new = _pieces(self.before), _pieces(self.after)
        out: list[tuple[str, str]] = []
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                out.append(("=", "".join(old[a:b])))
            else:
                out += [(sign, "".join(part)) for sign, part in (("-", old[a:b]), ("+", new[c:d])) if part]
        return out


def _pieces(text: str) -> list[str]:
    """Words of a command with the blanks before them, so that joining gives the text again."""
    words = read_server(text).words
    ends = [0, *(word.end for word in words)]
    pieces = [text[a:b] for a, b in pairwise(ends)]
    return [*pieces, text[ends[-1] :]] if text[ends[-1] :] else pieces


def make_plan(
    base: Base,
    changes: Sequence[Change],
    *,
    by_hand: Iterable[str] = (),
    hypothesis: HypothesisInfo | None = None,
    allowed_env: Iterable[str] = (),
) -> Plan:
    """The plan for these changes. Raises ReplayError where a change is refused or nothing would change."""
    for change in changes:
        check_allowed(change, allowed_env)
        check_config_file(base, change)
    after = change_command(base.text, changes)
    if after == base.text:
        raise ReplayError(
            "these changes leave the command as it is", hint="the launch has them already; try another fix"
        )
    return Plan(
        base, tuple(changes), base.text, after, tuple(by_hand),
        hypothesis.finding if hypothesis else None,
        hypothesis.title if hypothesis else "",
        tuple(hypothesis.verify) if hypothesis else (),
    )  # fmt: skip


def check_allowed(change: Change, allowed_env: Iterable[str] = ()) -> None:
    """Raise ReplayError for an environment variable that a fix may not touch."""
    if change.kind != "env" or change.name in set(allowed_env):
        return
    if change.name in _UNSAFE_ENV or not change.name.startswith(SAFE_ENV_PREFIXES):
        raise ReplayError(
            f"{change.name} is not on the list of variables that a fix may set",
            hint=f"if you trust it, allow it with --allow-env {change.name}",
        )


def check_config_file(base: Base, change: Change) -> None:
    """Raise ReplayError where a flag to be removed may stand in the server's `--config` file, which is not edited.

    Setting is safe: sglang reads the file first, and the command line wins (server_args.py, `--config`, 0.5.x).
    """
    command = base.command()
    config = command.flag("--config")
    if change.kind != "flag" or change.op != "remove" or config is None:
        return
    if any(main_spelling(flag.name) == main_spelling(change.name) for flag in command.flags):
        return
    raise ReplayError(
        f"{change.name} is not on the command line; it may stand in {config.value}",
        hint="take it out of that file by hand, or set it to another value with --fix 'set …'",
    )


def changes_of(hypothesis: HypothesisInfo, launch: LaunchInfo) -> tuple[list[Change], list[str]]:
    """The first runnable alternative of a hypothesis' fix as changes, and everything else as sentences.

    Each runnable flag or environment step of a finding is an alternative that cures by itself, best first, together
    with the steps that say `with_above`.
    """
    groups = _groups(hypothesis)
    runnable = [group for group in groups if all(_applies(step) for step in group)]
    rest = [_sentence(step) for group in groups if group not in runnable for step in group]
    rest += [f"or: {' and '.join(_sentence(step) for step in group)}" for group in runnable[1:]]
    return [_translated(step, launch) for step in (runnable[0] if runnable else [])], rest


def _groups(hypothesis: HypothesisInfo) -> list[list[FixInfo]]:
    """The alternatives of a fix: a step with those that help only together with it."""
    groups: list[list[FixInfo]] = []
    for step in hypothesis.fix:
        if step.with_above and groups:
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _applies(step: FixInfo) -> bool:
    return step.kind in ("flag", "env") and step.op in ("set", "remove") and _concrete(step)


def alternatives(hypothesis: HypothesisInfo, launch: LaunchInfo) -> list[list[Change]]:
    """Every runnable alternative of a hypothesis' fix as a change set of its own, in order."""
    groups = [group for group in _groups(hypothesis) if all(_applies(step) for step in group)]
    return [[_translated(step, launch) for step in group] for group in groups]


def _concrete(step: FixInfo) -> bool:
    if step.op == "remove" or step.value is not None:
        return True
    return step.kind == "flag" and catalog().takes_value(step.name) is False


def _translated(step: FixInfo, launch: LaunchInfo) -> Change:
    """The step in the spelling of the launch's version: an older name where the new one is not there yet."""
    name, value = step.name, step.value
    version = launch.version.exact or launch.version.low
    if step.kind == "flag" and version:
        book = catalog()
        life = book.flag_lifetime(name)
        if life is not None and book.exists(life, version) is False:
            for old in book.renamed_from(name):
                older = book.flag_lifetime(old)
                if older is not None and book.exists(older, version):
                    name = old
                    break
    return Change(step.kind, step.op, name, value or None)


def _sentence(step: FixInfo) -> str:
    from forensics.output.fixes import fix_line

    return fix_line(step).lstrip("·+- ")
