"""JSON Schema of rule files and of front matter, for editors that check YAML while one types."""

from __future__ import annotations

from typing import Any

from forensics.knowledge import deployment, finding, fix_steps
from forensics.rulebook import schema as rule_schema
from forensics.rulebook import words
from forensics.rulebook.derived import DERIVED
from forensics.schema.options import SYMPTOMS

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: dict[str, Any] = {"type": "string"}
_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_ID: dict[str, Any] = {"type": "string", "pattern": f"^(?:{words.ID.pattern})$"}
_VERSION: dict[str, Any] = {"type": ["string", "number", "null"]}
_SOURCE: dict[str, Any] = {"type": "string", "pattern": f"^(?:{words.SOURCE.pattern})$"}
_SOURCES: dict[str, Any] = {"type": "array", "items": _SOURCE}


def schema_of(what: str) -> dict[str, Any]:
    """The schema of `rule`, `finding` or `deployment`."""
    made = {"rule": _rule, "finding": _finding, "deployment": _deployment}[what]()
    return {"$schema": DRAFT, "title": f"forensics {what}", **made}


def _object(properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def _choice(*allowed: str, description: str = "") -> dict[str, Any]:
    return {"enum": list(allowed), **({"description": description} if description else {})}


def _choices(allowed: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "array", "items": {"enum": list(allowed)}}


def _conditions(description: str) -> dict[str, Any]:
    return {**_TEXTS, "description": description}


def _rule() -> dict[str, Any]:
    match = _object(
        {
            "any": {**_TEXTS, "minItems": 1, "description": "RE2, searched in the message of one line"},
            "kinds": _choices(words.KINDS),
            "not": {**_TEXTS, "description": "a line that also matches one of these does not count"},
            "frames": {**_TEXT, "description": "RE2: one frame of the block around the line must match"},
            "innermost": {**_TEXT, "description": "RE2: the innermost frame of the exception must match"},
            "exception": {**_TEXT, "description": "RE2: type of the exception whose block holds the line"},
        },
        ("any",),
    )
    begins = {**_TEXT, "description": "beginning of the patterns that this source prints"}
    of_wording = _object({"of": begins, "in": _SOURCE}, rule_schema.SOURCE_KEYS)
    properties = {
        "id": _ID,
        "title": _TEXT,
        "match": match,
        "captures": {"type": "object", "additionalProperties": {"enum": list(words.CAPTURE_TYPES)}},
        "where": {**_TEXT, "description": "comparison over the captures of one match"},
        "derive": _choice(*DERIVED, description="arithmetic that fills captures"),
        "min_same": {"type": "integer", "minimum": 1, "description": "that many matches with equal captures"},
        "differs": {**_TEXT, "description": "only where two ranks show different values of this capture"},
        "apart": {"type": "integer", "minimum": 1, "description": "percent of the greatest first value of any rank"},
        "role": _choice(*words.RULE_ROLES),
        "severity": _choice(*words.SEVERITIES),
        "stages": _choices(words.STAGE_WORDS),
        "scope": _choice(*words.SCOPES),
        "min_count": {"type": "integer", "minimum": 1},
        "lifetime": _object({"first": _VERSION, "last": _VERSION}),
        "mechanism": _TEXT,
        "docs": _TEXT,
        "sources": {"type": "array", "items": {"anyOf": [_SOURCE, of_wording]}},
    }
    return _object({k: properties[k] for k in rule_schema.KEYS}, rule_schema.REQUIRED)


def _finding() -> dict[str, Any]:
    about = {
        "must": "every one must be true (unknown: at most possible; false: no candidate)",
        "decisive": "the program names the cause, or it cannot be anything else",
        "strong": "raises possible to likely",
        "weak": "speaks for the cause, decides nothing",
        "against": "lowers",
        "excludes": "true: ruled out",
    }
    step = _object(
        {
            "kind": _choice(*fix_steps.KINDS),
            "op": _choice(*dict.fromkeys(op for ops in fix_steps.OPS.values() for op in ops)),
            "name": _TEXT,
            "value": _SCALAR,
            "version": _VERSION,
            "do": _TEXT,
            "note": _TEXT,
            "versions": _VERSION,
            "safe": {"type": "boolean"},
            "runnable": {"type": "boolean"},
            "with_above": {"type": "boolean", "description": "one change with the step above"},
            "when": {"type": "string", "description": "condition: offered only to launches where it holds"},
        },
        ("kind",),
    )
    shows = _object({"signal": _ID, "stage": _choice(*words.STAGE_WORDS)}, ("signal", "stage"))
    properties = {
        "id": _ID,
        "title": _TEXT,
        "category": _choice(*words.CATEGORIES),
        "status": _choice(*finding.STATUSES),
        "versions": {**_VERSION, "description": 'releases that can have the fault, e.g. ">=0.5.7,<0.5.10"; "" is any'},
        "applies": _conditions("facts of a launch that could have it at all"),
        "grounds": _object({name: _conditions(about[name]) for name in finding.STRENGTHS}, ("must",)),
        "explains": {"type": "array", "items": _ID},
        "shows": {"type": "array", "items": shows},
        "symptoms": _choices(SYMPTOMS),
        "look_alikes": {"type": "array", "items": _ID},
        "fix": {"type": "array", "items": step},
        "verify": _TEXTS,
        "sources": _SOURCES,
        "log_evidence": _choice(*finding.EVIDENCE),
        "requires": {**_TEXT, "description": "range of forensics versions"},
        "override": {"type": "boolean", "description": "replaces the shipped finding of this id"},
    }
    return _object({k: properties[k] for k in finding.KEYS}, finding.REQUIRED)


def _deployment() -> dict[str, Any]:
    count = {"type": ["integer", "null"], "minimum": 1}
    properties = {
        "id": _ID,
        "title": _TEXT,
        "strength": _choice(*deployment.STRENGTHS),
        "hardware": _object({"gpu": {"type": ["string", "null"]}, "count": count, "sm": count, "nodes": count}),
        "quantization": {"type": ["string", "null"]},
        "model": _object({"name": {"type": ["string", "null"]}, "architecture": {"type": ["string", "null"]}}),
        "features": _TEXTS,
        "versions": _VERSION,
        "args": {"type": "object"},
        "env": {"type": "object", "additionalProperties": _SCALAR},
        "facts": {"type": "object"},
        "warnings": {"type": "array", "items": _ID},
        "sources": _SOURCES,
    }
    return _object({k: properties[k] for k in deployment.KEYS}, deployment.REQUIRED)
