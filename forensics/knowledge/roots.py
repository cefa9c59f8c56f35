"""Where knowledge comes from: the shipped rules/ and kb/, further folders, and forensics.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from forensics.errors import UsageError
from forensics.frozen import frozen
from forensics.rulebook.patterns import BadPattern, compiled
from forensics.rulebook.versions import in_range
from forensics.schema.options import Options
from forensics.schema.span import Span
from forensics.version import VERSION

CONFIG_NAME = "forensics.toml"
_NAMESPACE = re.compile(r"[a-z][a-z0-9]*")


@frozen
class Root:
    """One knowledge base: its folders, the prefix of its ids, and whether its files may replace others of one id.
    `shown` is how messages name the folder that both lie in."""

    kb: Path | None
    rules: Path | None
    namespace: str = ""
    override: bool = False
    base: Path | None = None


@frozen
class Config:
    """What forensics.toml says. `replace_ids` are ids that own files may replace; `secrets` further RE2 patterns to
    mask; `allow_env` further environment variables that replay may set."""

    kb: tuple[Path, ...] = ()
    rules: tuple[Path, ...] = ()
    namespace: str = ""
    disabled: tuple[str, ...] = ()
    replace_ids: frozenset[str] = frozenset()
    override: bool = False
    secrets: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    path: Path | None = field(default=None)


def builtin_root() -> Root:
    """The shipped knowledge: top-level folders of a checkout, else the copies inside the installed package."""
    package = Path(__file__).parent.parent
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "rules").is_dir():
        return Root(checkout / "kb", checkout / "rules", base=checkout)
    inside = package / "builtin"
    return Root(inside / "kb", inside / "rules", base=inside)


def roots(options: Options, config: Config) -> tuple[Root, ...]:
    """All knowledge bases, shipped first, then forensics.toml's, then those of the command line."""
    own = [
        *(Root(p, None, config.namespace, config.override) for p in config.kb),
        *(Root(None, p, config.namespace, config.override) for p in config.rules),
        *(Root(_must_exist(p, "--kb"), None) for p in options.kb),
        *(Root(None, _must_exist(p, "--rules")) for p in options.rules),
    ]
    whole = [_with_rules(root) for root in own]
    inside = {r.rules.resolve() for r in whole if r.kb is not None and r.rules is not None}
    return (
        builtin_root(),
        *(r for r in whole if r.kb is not None or r.rules is None or r.rules.resolve() not in inside),
    )


def _with_rules(root: Root) -> Root:
    """A kb folder may hold its own rules/."""
    if root.kb is not None and root.rules is None and (root.kb / "rules").is_dir():
        return replace(root, rules=root.kb / "rules")
    return root


def _must_exist(path: Path, what: str) -> Path:
    if not path.exists():
        raise UsageError(
            f"{what} {path}: there is no such folder", hint="give a folder with findings/ and rules/ in it"
        )
    return path


def load_config(options: Options) -> Config:
    """forensics.toml: the one that the options name, else the one in the current folder, else nothing."""
    path = options.config or Path(CONFIG_NAME)
    if not path.is_file():
        if options.config is not None:
            raise UsageError(f"--config {path}: there is no such file", hint="see docs/knowledge-bases.md")
        return Config()
    import tomllib  # most runs have no such file

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"not TOML: {error}", span=Span(str(path), 1), hint="see docs/knowledge-bases.md") from None
    return _config(found, path)


_KB_KEYS = {"paths", "rules", "namespace", "disabled", "override", "requires"}
_PRIVACY_KEYS = {"secrets", "allow_env"}


def _config(found: Mapping[str, Any], path: Path) -> Config:
    kb, privacy = found.get("kb", {}), found.get("privacy", {})
    unknown = [k for k in found if k not in ("kb", "privacy", "replay", "fleet")]
    unknown += [f"kb.{k}" for k in kb if k not in _KB_KEYS] + [
        f"privacy.{k}" for k in privacy if k not in _PRIVACY_KEYS
    ]
    if unknown:
        hint = "known: " + ", ".join(sorted(f"kb.{k}" for k in _KB_KEYS)) + ", privacy.secrets, privacy.allow_env"
        raise UsageError(f"unknown key `{unknown[0]}`", span=Span(str(path), 1), hint=hint)
    _check_requires(kb.get("requires", ""), path)
    _check_names(kb, privacy, path)
    override = kb.get("override", False)
    return Config(
        kb=tuple(path.parent / p for p in _texts(kb, "paths", path)),
        rules=tuple(path.parent / p for p in _texts(kb, "rules", path)),
        namespace=str(kb.get("namespace", "")),
        disabled=_texts(kb, "disabled", path),
        replace_ids=frozenset(_texts(kb, "override", path)) if isinstance(override, list) else frozenset(),
        override=override is True,
        secrets=_texts(privacy, "secrets", path),
        allow_env=_texts(privacy, "allow_env", path),
        path=path,
    )


def _check_names(kb: Mapping[str, Any], privacy: Mapping[str, Any], path: Path) -> None:
    """The namespace and the secret patterns must be usable."""
    namespace = kb.get("namespace", "")
    if not isinstance(namespace, str) or (namespace and not _NAMESPACE.fullmatch(namespace)):
        raise UsageError(
            "the namespace is no lower-case word", span=Span(str(path), 1), hint='write `namespace = "acme"`'
        )
    for pattern in _texts(privacy, "secrets", path):
        try:
            compiled(pattern)
        except BadPattern as error:
            raise UsageError(f"`{pattern}`: {error}", span=Span(str(path), 1), hint=error.hint) from None


def _texts(table: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise UsageError(f"`{key}` must be a list of texts", span=Span(str(path), 1), hint=f'write `{key} = ["…"]`')
    return tuple(value)


def _check_requires(wanted: object, path: Path) -> None:
    if wanted and in_range(VERSION, str(wanted)) is not True:
        hint = f"this is forensics {VERSION}: update it, or change `requires`"
        raise UsageError(f"this knowledge base needs forensics {wanted}", span=Span(str(path), 1), hint=hint)
