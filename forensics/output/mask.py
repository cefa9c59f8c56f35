"""Secrets and user text are hidden before anything is shown, stored or exported.

Only linear-time patterns (RE2). Flags, paths, versions and numbers that a diagnosis needs stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import re2

from forensics.output import own
from forensics.output.secrets import SECRETS, USER_TEXT, Secret

MASK = "[masked]"
_UNSET = frozenset(
    ["", "none", "null", "nil", "true", "false", "unset", "undefined", "str", "string", "empty", "...", "***"]
)
_STAND_IN = re.compile(
    r"\[masked.*|\$\{?[A-Z_][A-Z0-9_]*\}?|\$\(.*|<[\w /.|-]{0,40}>|os\.(?:environ|getenv)\b.*", re.DOTALL
)
"""What stands for a value that is not there: already hidden, a variable, `<your key>`."""
_FILES = (".so", ".py", ".git", ".whl", ".md", ".sh", ".json", ".yaml", ".txt", ".cc", ".cpp", ".cu", ".rs")
"""Ends that look like a domain and are files: `cudaMalloc@libcudart.so`."""
_QUOTED = re.compile(r"[bru]?(\\{0,8}[\"'])")
_BASE64 = re.compile(r"\s*[A-Za-z0-9+/]{40,256}={0,2}\s*")


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Any, Secret], ...]:
    return tuple((re2.compile(secret.pattern), secret) for secret in (*USER_TEXT, *SECRETS))


@lru_cache(maxsize=1)
def _any_hint() -> Any:
    """Finds whether any of the patterns can match at all."""
    hints = sorted({hint for secret in (*USER_TEXT, *SECRETS) for hint in secret.hints})
    return re2.compile("|".join(re2.escape(hint) for hint in hints))


@lru_cache(maxsize=8)
def _extra(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(re2.compile(pattern) for pattern in patterns)


def mask(text: str, extra: Sequence[str] = ()) -> str:
    """`text` without secrets. `extra`: further RE2 patterns whose whole match is a secret; those
    of forensics.toml are hidden in every command without being named (own.py)."""
    low = text.lower()
    try:
        hinted = _any_hint().search(low) is not None
    except UnicodeEncodeError:  # bytes of a file name, or half of a pair of surrogates, are no text
        return mask(text.encode("utf-8", "backslashreplace").decode(), extra)
    if not hinted:
        return _masked_further(text, extra)
    for pattern, secret in _compiled():
        if any(hint in low for hint in secret.hints):
            text = pattern.sub(lambda m, s=secret: _hidden(m, s), text)
    return _masked_further(text, extra)


def _masked_further(text: str, extra: Sequence[str]) -> str:
    """The caller's own patterns, and lines that are a part of a key."""
    for pattern in _extra((*extra, *own.patterns())):
        text = pattern.sub(lambda m: MASK if m.group(0) else "", text)
    return MASK if _key_body(text) else text


def hidden_value(name: str, value: object) -> object:
    """The value of a setting, or MASK where its name says that it is a secret (`api_key`, `HF_TOKEN`)."""
    if value is None or isinstance(value, bool | tuple) or value == "":
        return value
    if not _is_secret(name):
        return value
    plain = f"{name}={value!r}"
    return MASK if mask(plain) != plain else value


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    sample = f"{name}='Word1x'"
    return mask(sample) != sample


class LineMasker:
    """`mask` for lines that come in order: what stands between the first and the last line of a private key is hidden
    whatever it looks like."""

    def __init__(self, extra: Sequence[str] = ()) -> None:
        self.extra = tuple(extra)
        self._left = 0

    def __call__(self, text: str) -> str:
        """One line, masked."""
        if self._left:
            self._left -= 1
            if "-----END " in text:
                self._left = 0
            return MASK
        if "-----BEGIN " in text and "PRIVATE KEY" in text and "-----END " not in text:
            self._left = _KEY_LINES
        return mask(text, self.extra)


_KEY_LINES = 120
"""Lines that a private key can have (4096 bits take 51)."""


def _hidden(match: Any, secret: Secret) -> str:
    """The match with its value hidden; unset values (`api_key=None`) stay readable: they are facts, not secrets."""
    whole = str(match.group(0))
    parts = match.groupdict()
    if not _counts(parts.get("value") or whole, secret, parts.get("keep") or ""):
        return whole
    before, after = _quotes(parts.get("value") or "")
    return f"{parts.get('keep') or ''}{before}{secret.shown}{after}{parts.get('rest') or ''}"


def _quotes(value: str) -> tuple[str, str]:
    """The quotes around a hidden value stay, so that what is masked can still be parsed."""
    found = _QUOTED.match(value)
    if found is None:
        return "", ""
    return found[0], found[1] if value.endswith(found[1]) and len(value) > len(found[0]) else ""


def _counts(value: str, secret: Secret, before: str) -> bool:
    bare = value.strip("\\\"' ")
    match secret.check:
        case "set":
            return bare.lower() not in _UNSET and not _STAND_IN.fullmatch(bare)
        case "flag" if bare == before.strip("-=\"', ").upper().replace("-", "_"):
            return False
        case "set or number" | "flag":
            number = bare.replace(".", "", 1).lstrip("-").isdigit() and len(bare) < 10
            return bare.lower() not in _UNSET and not number and not _STAND_IN.fullmatch(bare)
        case "random":
            return _mixed(value)
        case "mail":
            return not whole_file(value)
    return True


def whole_file(text: str) -> bool:
    """Whether what looks like an e-mail address names a file, a library or a branch."""
    return text.lower().endswith(_FILES)


def _mixed(text: str) -> bool:
    """No word and no name: digits, or upper and lower case in one run."""
    run = text.partition("-")[2] if text[:3] in ("sk-", "pk-", "rk-") else text
    return any(c.isdigit() for c in run) or (run != run.lower() and run != run.upper())


def _key_body(text: str) -> bool:
    """Whether a line is nothing but base64, as in the body of a key whose head stands on another line (a hash, which
    is hexadecimal, is none)."""
    if len(text) > 300 or not _BASE64.fullmatch(text):
        return False
    low = text.lower()
    return text != low and any(c.isdigit() or c in "+/" for c in text) and any("g" <= c <= "z" for c in low)
