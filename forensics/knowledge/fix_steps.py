"""Fix steps: typed changes that people read and replay applies."""

from __future__ import annotations

import re

from forensics.knowledge.condition_list import read_condition
from forensics.rulebook.located import Located, Reader
from forensics.rulebook.versions import parse_range, version_key
from forensics.schema.finding import HOLE, Condition, FixStep

KEYS = ("kind", "op", "name", "value", "version", "do", "note", "versions", "safe", "runnable", "with_above", "when")
KINDS = ("flag", "env", "package", "host", "other")
OPS = {"flag": ("set", "remove", "respell"), "env": ("set", "remove"), "package": ("at-least", "exact", "below")}
_FLAG = re.compile(r"--[A-Za-z][\w-]*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_fix(reader: Reader, at: Located | None) -> tuple[FixStep, ...]:
    """The steps of a `fix` list."""
    steps = tuple(_step(reader, item) for item in reader.sequence(at))
    if at is not None and steps and steps[0].with_above:
        reader.fault("K005", "the first step has none above it", at, "take `with_above` out, or move the step down")
    return steps


def _step(reader: Reader, at: Located) -> FixStep:
    fields = reader.keys(at, KEYS, ("kind",), "a fix step")
    kind = reader.choice(fields.get("kind"), KINDS, "other")
    wanted = {"flag": ("op", "name"), "env": ("op", "name"), "package": ("op", "name", "version")}.get(kind, ("do",))
    for key in wanted:
        if key not in fields and "kind" in fields:
            reader.fault("K004", f"a fix step of kind {kind} lacks `{key}`", at, f"add `{key}: …`")
    op = reader.choice(fields.get("op"), OPS[kind], "") if kind in OPS else ""
    step = FixStep(
        kind=kind,
        op=op,
        name=reader.text(fields.get("name")),
        value=_value(reader, fields.get("value")),
        version=_version(reader, fields.get("version")),
        do=reader.text(fields.get("do")),
        note=reader.text(fields.get("note")),
        versions=_range(reader, fields.get("versions")),
        safe=reader.flag(fields.get("safe"), True),
        runnable=reader.flag(fields.get("runnable"), False),
        with_above=reader.flag(fields.get("with_above"), False),
        when=_when(reader, fields.get("when")),
    )
    _check(reader, at, fields, step)
    return step


def _check(reader: Reader, at: Located, fields: dict[str, Located], step: FixStep) -> None:
    if step.runnable and step.kind not in ("flag", "env"):
        hint = "only flags and environment variables are applied by replay: take `runnable` out"
        reader.fault("F312", f"a step of kind {step.kind} cannot be runnable", fields["runnable"], hint)
    name = fields.get("name")
    form = {"flag": _FLAG, "env": _ENV}.get(step.kind)
    if name is not None and form is not None and not (form.fullmatch(step.name) or HOLE.fullmatch(step.name)):
        hint = "write `--flag-name` and put the value under `value`" if step.kind == "flag" else "write `NAME`"
        reader.fault("F313", f"`{step.name}` is no {step.kind} name", name, hint)
    if step.op == "set" and step.kind == "env" and step.value is None and name is not None:
        reader.fault("K004", "an environment step that sets needs a value", at, 'add `value: "1"`')


def _when(reader: Reader, at: Located | None) -> Condition | None:
    return read_condition(reader, at, "when") if at is not None else None


def _value(reader: Reader, at: Located | None) -> str | None:
    return None if at is None or at.value is None else reader.text(at)


def _version(reader: Reader, at: Located | None) -> str:
    text = reader.text(at) if at is not None else ""
    if at is not None and text and version_key(text) is None:
        reader.fault("K010", f"`{text}` is no release name", at, 'write it as `"0.5.10"`, in quotes')
    return text


def _range(reader: Reader, at: Located | None) -> str:
    text = reader.text(at) if at is not None and at.value is not None else ""
    if at is not None and parse_range(text) is None:
        reader.fault("K010", f"`{text}` is no range of releases", at, 'write it as `">=0.5.7,<0.5.10"`')
        return ""
    return text
