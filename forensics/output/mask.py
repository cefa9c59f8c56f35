"""Secrets and user text are hidden before anything is shown, stored or exported.

Only linear-time patterns (RE2). Flags, paths, versions and numbers that a diagnosis needs stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import re2

MASK = "[masked]"

# (pattern, replacement): group references as in RE2. Order matters: whole forms before their parts.
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.)*?(-----END [A-Z ]*PRIVATE KEY-----|$)", MASK),
    (r"(?i)(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|token)\s+)[^\s'\",}]+", r"\1" + MASK),
    (r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}", r"\1" + MASK),
    (
        r"(?i)(['\"]?\b[a-z0-9_.-]*(?:api[_-]?key|secret(?:[_-]?access)?(?:[_-]?key)?|passw(?:or)?d|passphrase|"
        r"access[_-]?token|auth[_-]?token|hf[_-]?token|client[_-]?secret|private[_-]?key|session[_-]?token|"
        r"credentials?)['\"]?\s*[:=]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s,;&)}\]'\"]+)",
        r"\1" + MASK,
    ),
    (
        r"(?i)(--(?:[a-z-]*api-key|[a-z-]*token|[a-z-]*password|[a-z-]*secret|ssl-keyfile-password)(?:=|\s+))"
        r"(?:\"[^\"]*\"|'[^']*'|[^\s-][^\s]*)",
        r"\1" + MASK,
    ),
    (r"(\b[A-Z][A-Z0-9_]*(?:_TOKEN|_SECRET|_PASSWORD|_API_KEY|_ACCESS_KEY|_PASSWD)=)[^\s'\",;)]+", r"\1" + MASK),
    (r"([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*):[^\s/@]+@", r"\1:" + MASK + "@"),
    (r"\b(hf|api_org)_[A-Za-z0-9]{16,}", MASK),
    (r"\bsk-[A-Za-z0-9_-]{16,}", MASK),
    (r"\b(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}", MASK),
    (r"\b(AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b", MASK),
    (r"\bAIza[A-Za-z0-9_-]{30,}", MASK),
    (r"\bya29\.[A-Za-z0-9_-]{20,}", MASK),
    (r"\bxox[abprs]-[A-Za-z0-9-]{10,}", MASK),
    (r"\bnvapi-[A-Za-z0-9_-]{20,}", MASK),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+", MASK),
    (
        r"(?i)([?&](?:x-amz-signature|x-amz-credential|x-amz-security-token|sig|signature|token|key)=)[^&\s'\"]+",
        r"\1" + MASK,
    ),
    (r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}", "[masked e-mail]"),
    # user text inside request dumps: obj=GenerateReqInput(... text='…' …), prompt=…, messages=[…], input_ids=[…]
    (r"(?s)(\b(?:Receive|Finish): obj=).*", r"\1" + "[masked request]"),
    (r"(?s)(\breqs?=\[?Req\(rid=[^,)]*).*", r"\1" + ", [masked request]"),
    (
        r"(?s)(['\"]?\b(?:prompt|input_text|origin_input_text|messages|system_prompt)['\"]?\s*[:=]\s*)"
        r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\[.*\])",
        r"\1" + MASK,
    ),
    (r"(\b(?:input_ids|output_ids|origin_input_ids)\s*[:=]\s*(?:array\('q', )?)\[[0-9, ]*(?:\]|$)", r"\1" + MASK),
)

_NULLS = ("None", "null", "''", '""')


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Any, str], ...]:
    return tuple((re2.compile(pattern), replacement) for pattern, replacement in _PATTERNS)


@lru_cache(maxsize=8)
def _extra(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(re2.compile(pattern) for pattern in patterns)


def mask(text: str, extra: Sequence[str] = ()) -> str:
    """`text` without secrets. `extra`: further RE2 patterns whose whole match is a secret (from forensics.toml)."""
    if not _suspicious(text) and not extra:
        return text
    for pattern, replacement in _compiled():
        text = pattern.sub(lambda m, r=replacement: _replace(m, r), text)
    for pattern in _extra(tuple(extra)):
        text = pattern.sub(MASK, text)
    return text


def _replace(match: Any, replacement: str) -> str:
    """Keep unset values (`api_key=None`) readable: they are facts, not secrets."""
    whole = match.group(0)
    if whole.endswith(_NULLS):
        return str(whole)
    return str(match.expand(replacement))


_HINTS = (
    "key", "token", "secret", "passw", "bearer", "basic ", "://", "@", "sk-", "hf_", "AKIA", "ASIA", "AROA", "AIDA",
    "AIza", "ya29", "xox", "eyJ", "nvapi", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat", "PRIVATE",
    "obj=", "Req(", "prompt", "messages", "input_ids", "output_ids", "input_text", "credential", "sig=", "signature",
)  # fmt: skip


def _suspicious(text: str) -> bool:
    low = text.lower()
    return any(hint.lower() in low for hint in _HINTS)
