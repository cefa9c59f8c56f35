# ruff: noqa: E501 (a table of patterns)
"""The patterns of secrets and of user text (RE2: linear time). Each has a group `keep` (or two) that stays readable and a
group `value` that is hidden; without `value` the whole match is."""

from __future__ import annotations

from typing import Literal

from forensics.frozen import frozen

Check = Literal["", "set", "set or number", "flag", "random", "mail"]

# A name's quotes, `]` of os.environ["X"], then `:`, `=` or `=>`; or the comma of (b'x-api-key', b'…').
_SEP = r"""(?:(?:\\*["'])?\]?\s*(?:=>|[:=])\s*|\\*["'],\s*b?(?:\\*["'])?)"""
# A quoted value (also one whose quotes are escaped, also one that the end of the line cuts), or a bare word.
_VALUE = (
    r"""(?P<value>[bru]?\\+"[^"\\]*(?:\\+"|\\*$)|[bru]?\\+'[^'\\]*(?:\\+'|\\*$)|[bru]?"(?:[^"\\]|\\.)*(?:"|\\?$)"""
    r"""|[bru]?'(?:[^'\\]|\\.)*(?:'|\\?$)|[^\s,;&)}\]'"\\]+)"""
)
_NAMES = (
    r"api[_-]?keys?|api[_-]?secret|apikey|secret(?:[_-]?access)?(?:[_-]?key)?|passw(?:or)?d|passphrase|"
    r"(?:access|auth|refresh|session|bearer|id|hf|hub|security|registry|deploy|personal[_-]?access|csrf)[_-]?token|"
    r"client[_-]?secret|(?:private|account|encryption|signing|license|subscription|shared[_-]?access|webhook)[_-]?key|"
    r"connection[_-]?string|credentials?"
)


@frozen
class Secret:
    """`hints`: one of these (lower case) stands in every text that the pattern matches. `check` says when a match
    counts: `set` (not None, empty or a placeholder), `set or number` (nor a plain number), `flag` (nor the word of a usage text: `--api-key API_KEY`), `random` (a mixed text,
    no word), `mail` (no file name)."""

    pattern: str
    hints: tuple[str, ...]
    check: Check = ""
    shown: str = "[masked]"


_KEYED = ("key", "secret", "passw", "passphrase", "token", "credential", "string")

SECRETS: tuple[Secret, ...] = (
    Secret(r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)", ("private key",)),
    Secret(
        r"""(?i)(?P<keep>\b(?:proxy-)?authorization(?:(?:\\*["'])?\s*[:=]|\\*["'],)\s*(?:b?\\*["'])?)(?P<value>[^'"\\\r\n]+)""",
        ("authorization",),
        "set",
    ),
    Secret(r"(?i)(?P<keep>\bbearer\s+)(?P<value>[A-Za-z0-9._~+/=-]{8,})", ("bearer",), "random"),
    Secret(r"""(?i)(?P<keep>\b(?:set-)?cookie(?:(?:\\*["'])?\s*[:=]|\\*["'],)\s*(?:b?\\*["'])?)(?P<value>[^'"\\\r\n]+)""", ("cookie",), "set"),
    Secret(rf"(?i)(?P<keep>(?:\b|_)[a-z0-9_.-]*(?:{_NAMES}){_SEP}){_VALUE}", _KEYED, "set"),
    Secret(rf"(?P<keep>\b[A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|_PASS|_KEY|_PAT){_SEP}){_VALUE}", ("token", "secret", "pass", "_key", "_pat"), "set or number"),
    Secret(r"(?P<keep>\b(?:ENV|setenv)\s+[A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY|_PAT)\s+)(?P<value>\S+)", ("env ", "setenv"), "set or number"),
    Secret(rf"(?i)(?P<keep>(?:^|[^\w#-])token{_SEP}[bru]?(?:\\*[\"'])?)(?P<value>[A-Za-z0-9._~+/=-]{{16,}})", ("token",), "random"),
    Secret(
        rf"""(?P<keep>--(?:[a-z-]*api-key|[a-z-]*token|[a-z-]*password|[a-z-]*passphrase|[a-z-]*secret)(?:=|\s+|["'],\s*))(?:{_VALUE})""",
        ("--",),
        "flag",
    ),
    Secret(r"(?P<keep>[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@'\"]*):(?P<value>[^\s/'\"]+)@", ("://",), shown=":[masked]@"),
    Secret(r"(?P<keep>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<value>[^\s/:@'\"]{16,}@)", ("://",), shown="[masked]@"),
    Secret(
        r"(?i)(?P<keep>[?&](?:x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|x-goog-credential|sig|"
        r"signature|token|key|secret|password|auth)=)(?P<value>[^&\s'\"\\]+)",
        ("?", "&"),
        "set or number",
    ),
    Secret(r"\b(?:hf|api_org)_[A-Za-z0-9]{16,}", ("hf_", "api_org_"), "random"),
    Secret(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}", ("k-", "k_"), "random"),
    Secret(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}", ("gh", "glpat", "github_pat")),
    Secret(r"\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}\b", ("akia", "asia", "aroa", "aida", "abia", "acca")),
    Secret(r"\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{16,}", ("aiza", "ya29", "gocspx")),
    Secret(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[A-Za-z0-9/]+", ("xox", "hooks.slack")),
    Secret(r"\bnvapi-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}|\bdckr_pat_[A-Za-z0-9_-]{20,}", ("nvapi", "npm_", "pypi-", "dckr")),
    Secret(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", ("eyj",)),
    Secret(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b", ("@",), "mail", "[masked e-mail]"),
)  # fmt: skip

USER_TEXT: tuple[Secret, ...] = (
    # request dumps: everything after the head is what a user wrote, or follows from it
    Secret(r"(?s)(?P<keep>\b(?:Receive|Finish):? obj=)(?P<value>.+)", ("obj=",), shown="[masked request]"),
    Secret(r"""(?s)(?P<keep>\\*["']obj\\*["']\s*:\s*)(?P<value>[{\["\\].*)""", ("obj",), shown="[masked request]"),
    Secret(r"(?s)(?P<keep>\b\w*(?:ReqInput|CompletionRequest|ResponsesRequest|EmbeddingRequest)\()(?P<value>[^)*].*)", ("reqinput(", "request("), shown="[masked request]"),
    Secret(r"(?s)(?P<keep>\bReq\(rid=[^,)]*)(?P<value>[,)].*)", ("req(rid",), shown=", [masked request]"),
    Secret(
        r"""(?s)(?P<keep>\\*["']?\b(?:prompts?|input_text|output_text|origin_input_text|system_prompt|user_prompt)\\*["']?\s*[:=]\s*)"""
        r"""(?P<value>[bru]?\\*"(?:[^"\\]|\\.)*(?:"|\\?$)|[bru]?\\*'(?:[^'\\]|\\.)*(?:'|\\?$)|\[\\*["'].*)""",
        ("prompt", "put_text"),
        "set",
    ),
    Secret(r"""(?s)(?P<keep>\\*["']?\bmessages\\*["']?\s*[:=]\s*)(?P<value>\[.*)""", ("messages",)),
    Secret(
        r"""(?s)(?P<keep>\\*["'](?:content|text)\\*["']\s*:\s*)(?P<value>\\*"(?:[^"\\]|\\.)*(?:"|\\?$)|\\*'(?:[^'\\]|\\.)*(?:'|\\?$)|\[.*)""",
        ("content", "text"),
        "set",
    ),
    Secret(r"""(?s)(?P<keep>\binput_value=)(?P<value>['"{\[].{16,}?)(?P<rest>, input_type=|$)""", ("input_value",)),
    Secret(r"(?P<keep>\b(?:input_ids|output_ids|origin_input_ids|token_ids|prompt_token_ids)\\*[\"']?\s*[:=]\s*(?:array\('q', |tensor\()?)(?P<value>\[[0-9,\s\[\]-]*)", ("_ids",)),
)  # fmt: skip
