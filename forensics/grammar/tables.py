"""Parser tables as JSON, so that a grammar that did not change is not worked out again at every start."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

PREFIX = "grammar-"
"""Names of the cache files (forensics/knowledge/cache.py)."""


def table_key(source: str, options: dict[str, Any]) -> str:
    """Key of a grammar: changes with its text, its options, and the versions of Lark and of Python."""
    parts = [lark.__version__, repr(sys.version_info[:3]), source, repr(sorted(options.items())), "1"]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def dump(parser: Lark) -> Any:
    """The tables of a parser as a JSON value."""
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data.pop("grammar", None)
    if isinstance(data["options"]["lexer"], type):
        _set_lexer(data, None)
    return {"data": data, "memo": memo}


def _set_lexer(data: Any, lexer: type | None) -> None:
    """Put a lexer class of our own into the tables (None: take it out)."""
    data["options"] = {**data["options"], "lexer": lexer}
    data["parser"]["lexer_conf"]["lexer_type"] = lexer


def restore(stored: Any, lexer: type | None = None) -> Lark | None:
    """The parser of stored tables, with the lexer class that it was made with, if any; None where they are damaged."""
    try:
        data, memo = stored["data"], {int(k): v for k, v in stored["memo"].items()}
        if lexer is not None:
            _set_lexer(data, lexer)
        table = data["parser"]["parser"]
        table["tokens"] = {int(k): v for k, v in table["tokens"].items()}
        table["states"] = {
            int(state): {int(token): action for token, action in actions.items()}
            for state, actions in table["states"].items()
        }
        parser: Lark = Lark._load_from_dict(data, memo)  # type: ignore[no-untyped-call]
        return parser
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, re.error, lark.LarkError):
        return None
