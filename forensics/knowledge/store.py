"""All knowledge of a run: shipped rules, findings and deployments, and what the caller adds to them.

Precedence: shipped first, then forensics.toml's folders in their order, then `--kb` and `--rules` in theirs. Of two
files with one id the earlier is used and the later is a problem, unless the later one may replace it: `override:
true` in a finding, or the id (or `override = true` for all) in forensics.toml.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TypeVar

from forensics.errors import FindingError, ForensicsError, RuleError
from forensics.frozen import frozen
from forensics.knowledge.config_check import config_problems
from forensics.knowledge.read_root import Content, read_root
from forensics.knowledge.roots import Config, Root, load_config, roots
from forensics.rulebook.load import duplicate
from forensics.schema.finding import Deployment, Finding
from forensics.schema.options import Options
from forensics.schema.signal import Rule

T = TypeVar("T", Rule, Finding, Deployment)


@frozen
class Knowledge:
    """`rules` by id; `findings` and `deployments` sorted by id; `problems` of the files that could not be used."""

    rules: dict[str, Rule]
    findings: tuple[Finding, ...]
    deployments: tuple[Deployment, ...]
    problems: tuple[ForensicsError, ...]
    config: Config = field(default_factory=Config)

    def finding(self, identity: str) -> Finding | None:
        """The finding with this id."""
        return next((f for f in self.findings if f.id == identity), None)


def load(options: Options | None = None, drafts: bool = False) -> Knowledge:
    """Everything that this run knows. UsageError where an option names a folder that does not exist. `drafts`: with
    the findings that their author has not filled in; without, they are problems, for they say nothing yet."""
    options = options or Options()
    config = load_config(options)
    bases = roots(options, config)
    contents = [(root, read_root(root)) for root in bases]
    if not drafts:
        contents = [(root, content.finished() if content.drafts else content) for root, content in contents]
    problems = [p for _, content in contents for p in content.problems]
    rules = _merged(((r, c.rules) for r, c in contents), config, problems, RuleError)
    findings = _merged(((r, c.findings) for r, c in contents), config, problems, FindingError)
    deployments = _merged(((r, c.deployments) for r, c in contents), config, problems, FindingError)
    problems += [p.error(FindingError) for p in config_problems(config, findings, rules)]
    used = sorted((f for f in findings.values() if f.id not in config.disabled), key=lambda f: f.id)
    return Knowledge(
        rules=rules,
        findings=tuple(used),
        deployments=tuple(sorted(deployments.values(), key=lambda d: d.id)),
        problems=tuple(problems),
        config=config,
    )


def _merged(
    parts: Iterable[tuple[Root, tuple[T, ...]]],
    config: Config,
    problems: list[ForensicsError],
    kind: type[ForensicsError],
) -> dict[str, T]:
    found: dict[str, T] = {}
    for root, items in parts:
        for item in items:
            old = found.get(item.id)
            if old is None or root.override or item.id in config.replace_ids or getattr(item, "override", False):
                found[item.id] = item
            else:
                problems.append(duplicate(item.id, item.span.path, old.span.path).error(kind))
    return found


__all__ = ["Content", "Knowledge", "load"]
