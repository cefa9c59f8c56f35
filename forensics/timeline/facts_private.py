"""Facts whose name says that their value is a secret: `args.api_key`, `env.HF_TOKEN`. That one is set is a fact; what
it is set to never is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from forensics.output.mask import hidden_value
from forensics.schema.facts import Fact


def without_secrets(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The same facts; secret values are replaced by the mask (unset ones stay unset)."""
    return {name: _hidden(fact) for name, fact in facts.items()}


def _hidden(fact: Fact) -> Fact:
    group, _, name = fact.name.partition(".")
    if group not in ("args", "env"):
        return fact
    value = hidden_value(name, fact.value)
    return fact if value is fact.value else replace(fact, value=str(value))
