"""Lint of one finding: references, evidence, fix, and whether its own logs show what it demands."""

from __future__ import annotations

import re

from forensics.grammar.condition_tree import Node, names
from forensics.grammar.conditions import parse_condition
from forensics.knowledge.front import Page, headings, read_page
from forensics.knowledge.library import Library
from forensics.knowledge.lint_conditions import lint_condition, lint_conditions, lint_together
from forensics.knowledge.names import alive, lifetime_text
from forensics.knowledge.privacy import leaks
from forensics.knowledge.trial import cases_of, read_log
from forensics.knowledge.unfilled import placeholder
from forensics.rulebook.evaluate import evaluate
from forensics.rulebook.located import Located, Reader, nearest
from forensics.rulebook.problem import Edit, Problem
from forensics.rulebook.versions import in_range
from forensics.schema.finding import HOLE, Finding, LogBlock

SECTIONS = ("What one sees", "What happens", "How to tell it from look-alikes", "Fix", "History")


def lint_finding(page: Page, finding: Finding, lib: Library, shipped: bool = True) -> None:
    """Note everything that is wrong with a finding beyond its form."""
    reader = page.reader
    assert reader.root is not None
    fields = reader.root.fields()
    grounds = fields["grounds"].fields() if "grounds" in fields else {}
    lint_conditions(reader, fields.get("applies"), lib)
    must: list[Node] = []
    for strength, at in grounds.items():
        # What speaks against a cause may well be a release outside of its range.
        nodes = lint_conditions(reader, at, lib, finding.versions if strength in ("must", "decisive", "strong") else "")
        must = nodes if strength == "must" else must
    lint_together(reader, grounds.get("must"), must, finding.versions)
    if "must" in grounds and not must and not any(c.strength == "must" for c in finding.grounds):
        reader.fault(
            "F311",
            "`must` is empty: the finding would be a candidate for every log",
            grounds["must"],
            "name the signal without which it cannot be this cause",
        )
    _references(reader, fields, finding, lib, shipped)
    _headings(page, finding)
    _told_apart(page, fields, lib)
    _evidence(reader, fields, finding)
    _fix(reader, fields.get("fix"), finding, lib)
    _unfilled(page)
    _privacy(reader, finding, lib)
    _exercised(reader, grounds.get("must"), finding, lib)


def _references(reader: Reader, fields: dict[str, Located], finding: Finding, lib: Library, shipped: bool) -> None:
    for item in fields["look_alikes"].items() if "look_alikes" in fields else ():
        name = reader.text(item)
        other = lib.findings.get(name)
        if other is None or name == finding.id:
            _dead(reader, item, name, "finding", [i for i in lib.findings if i != finding.id], "F301")
        elif finding.id not in other.look_alikes and (shipped or other.id not in lib.shipped):
            hint = f"add `{finding.id}` to `look_alikes` of {other.span.path}"
            edit = mutual_edit(other, finding.id, lib)
            reader.add(
                "F303", f"`{name}` does not name this finding as a look-alike", item.line, item.column, hint, edit
            )
    for item in fields["explains"].items() if "explains" in fields else ():
        if reader.text(item) not in lib.rules:
            _dead(reader, item, reader.text(item), "rule", list(lib.rules), "F302")
    for item in fields["shows"].items() if "shows" in fields else ():
        at = item.fields().get("signal")
        if at is not None and reader.text(at) not in lib.rules:
            _dead(reader, at, reader.text(at), "rule", list(lib.rules), "F302")


def mutual_edit(other: Finding, name: str, lib: Library) -> Edit | None:
    """The edit of another finding's file that adds a look-alike there; None where that file is not at hand."""
    path = lib.path_of(other.span.path)
    page = read_page(path, other.span.path) if path is not None else None
    if path is None or page is None or isinstance(page, Problem) or page.reader.root is None:
        return None
    root = page.reader.root
    at = root.fields().get("look_alikes")
    if at is None:
        line = root.key_at["fix"][0] - 1 if "fix" in root.key_at else page.body_line - 2
        return Edit(line, insert=f"look_alikes: [{name}]", path=str(path))
    excerpt = page.reader.lines[at.line - 1]
    if excerpt[at.column - 1 : at.column] == "[":
        rest = ", " if at.items() else ""
        return Edit(at.line, at.column, "[", f"[{name}{rest}", path=str(path))
    return Edit(at.line, insert=f"{excerpt[: at.column - 1]}- {name}", path=str(path)) if at.items() else None


def _dead(reader: Reader, at: Located, name: str, what: str, known: list[str], code: str) -> None:
    near = nearest(name, known)
    line, column = at.at(0)
    hint = f"did you mean `{near}`?" if near else f"write that {what} first, or take the reference out"
    reader.add(
        code, f"no {what} is named `{name}`", line, column, hint, Edit(line, column, name, near) if near else None
    )


def _headings(page: Page, finding: Finding) -> None:
    found = headings(page)
    title = next((h for h in found if h.level == 1), None)
    if title is None:
        edit = Edit(page.body_line - 1, insert=f"# {finding.title}")
        page.reader.add(
            "F304", "the body has no title", page.body_line - 1, 1, f"begin it with `# {finding.title}`", edit
        )
    elif title.text.strip() != finding.title.strip():
        edit = Edit(title.line, 1, f"# {title.text}", f"# {finding.title}")
        page.reader.add("F310", "the heading differs from `title`", title.line, 1, f"write `# {finding.title}`", edit)
    have = {h.text.strip() for h in found if h.level == 2}
    for section in SECTIONS[:4]:
        if section not in have:
            last = page.body_line + page.body.count("\n")
            hint = f"add a section `## {section}`"
            page.reader.add("F304", f"the section `{section}` is missing", min(last, page.body_line), 1, hint)


def _told_apart(page: Page, fields: dict[str, Located], lib: Library) -> None:
    """The section on look-alikes has to name each of them: a name alone does not help who reads the page."""
    section = _section(page, SECTIONS[2])
    for item in fields["look_alikes"].items() if section and "look_alikes" in fields else ():
        name = page.reader.text(item)
        if name in lib.findings and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", section):
            line, column = item.at(0)
            hint = f"write there what tells them apart: `- [{name}]({name.rpartition('/')[2]}.md): its sign`"
            page.reader.add("F317", f"`## {SECTIONS[2]}` does not name `{name}`", line, column, hint)


def _section(page: Page, title: str) -> str:
    """The text of a section; empty where there is none."""
    found = headings(page)
    start = next((h.line for h in found if h.level == 2 and h.text.strip() == title), None)
    if start is None:
        return ""
    end = next((h.line for h in found if h.line > start and h.level <= 2), len(page.reader.lines) + 1)
    return "\n".join(page.reader.lines[start : end - 1])


def _evidence(reader: Reader, fields: dict[str, Located], finding: Finding) -> None:
    at = fields.get("log_evidence")
    if at is None:
        return
    matches = [b for b in finding.logs if b.expect == "match"]
    near = [b for b in finding.logs if b.expect == "near-miss"]
    if finding.log_evidence == "none":
        if matches:
            line, column = at.at(0)
            hint = "write `rendered` (or `real` for lines of a real run)"
            edit = Edit(line, column, "none", "rendered")
            reader.add(
                "F307", "`log_evidence: none`, but the body holds a log that must match", line, column, hint, edit
            )
        return
    if not matches:
        hint = "add a fenced block ```log match line=N with the telling lines, or say `log_evidence: none`"
        reader.fault("F305", "no log block shows the cause", at, hint)
    if not near:
        hint = "add a fenced block ```log near-miss: a similar log that is not this cause"
        reader.fault("F306", "no log block shows a near miss", at, hint)


def _holes(reader: Reader, item: Located, lib: Library) -> None:
    """Whether what a step takes from the log is captured by a rule, or a fact of the command."""
    for key in ("name", "value", "version", "do"):
        at = item.fields().get(key)
        for found in HOLE.finditer(at.value) if at is not None and isinstance(at.value, str) else ():
            rule, _, capture = found["name"].partition(".")
            line, column = at.at(found.start()) if at is not None else (1, 1)
            if rule in lib.rules:
                have = [name for name, _ in lib.rules[rule].captures]
                if capture not in have:
                    hint = f"its captures: {', '.join(have) or 'none'}"
                    reader.add("C203", f"the rule `{rule}` captures no `{capture}`", line, column, hint)
            elif rule not in ("args", "env"):
                near = nearest(rule, lib.rules)
                hint = f"did you mean `{near}`?" if near else "name a rule of rules/, `args` or `env`"
                reader.add("C202", f"no rule is named `{rule}`", line, column, hint)


def _fix(reader: Reader, at: Located | None, finding: Finding, lib: Library) -> None:
    for item, step in zip(at.items() if at is not None else (), finding.fix, strict=False):
        name = item.fields().get("name")
        if (when := item.fields().get("when")) is not None:
            lint_condition(reader, when, lib, finding.versions)
        _holes(reader, item, lib)
        if name is not None and HOLE.fullmatch(step.name):
            continue
        if step.kind != "flag" or name is None or "router" in f"{finding.id} {finding.title} {step.note}".lower():
            continue
        versions = tuple(
            v for v in lib.catalog.read if in_range(v, finding.versions) and in_range(v, step.versions)
        ) or (lib.catalog.newest,)
        line, column = name.at(0)
        if step.name not in lib.catalog.flags:
            near = nearest(step.name, lib.catalog.flags)
            hint = f"did you mean `{near}`?" if near else "no release that was read has it"
            edit = Edit(line, column, step.name, near) if near else None
            reader.add("F309", f"sglang has no flag `{step.name}`", line, column, hint, edit)
        elif step.op == "set" and not alive(step.name, versions, lib.catalog):
            lived = lifetime_text(step.name, lib.catalog)
            said = step.versions or finding.versions or "the newest release"
            reader.add(
                "F309", f"`{step.name}` lived {lived}, not in {said}", line, column, "state `versions` of the step"
            )


def _unfilled(page: Page) -> None:
    """What `kb new` left for the author to write."""
    for number, line in enumerate(page.reader.lines, 1):
        told = placeholder(line)
        if told is not None:
            column = line.index(told) + 1
            page.reader.add("F316", "the draft's text still stands here", number, column, "write it, or take it out")


def _privacy(reader: Reader, finding: Finding, lib: Library) -> None:
    for block in finding.logs:
        for index, line in enumerate(block.text.split("\n")):
            for leak in leaks(line, lib.knowledge.config.secrets):
                code = "S401" if leak.secret else "S402"
                edit = Edit(block.span.line + index, leak.offset + 1, leak.old, leak.new)
                reader.add(
                    code,
                    f"the log block holds {leak.what}",
                    block.span.line + index,
                    leak.offset + 1,
                    f"write `{leak.new}`",
                    edit,
                )


def block_text(block: LogBlock, lib: Library) -> str | None:
    """The text of a block, or of the sample that it names; None where that sample is not at hand."""
    if not block.sample:
        return block.text
    path = lib.sample(block.sample)
    return None if path is None else read_log(path)


def _exercised(reader: Reader, at: Located | None, finding: Finding, lib: Library) -> None:
    """Every `must` has to hold in a log of the finding itself, else nobody knows whether it ever can."""
    wanted = {c.text: c for c in finding.grounds if c.strength == "must" and _all_known(c.text, lib)}
    blocks = [b for b in finding.logs if b.expect == "match"]
    if at is None or not blocks or finding.log_evidence == "none":
        return
    told: dict[str, str] = {}
    for block in blocks:
        text = block_text(block, lib)
        if text is None:
            if lib.samples is not None:
                reader.add("L404", f"there is no sample `{block.sample}`", block.span.line - 1, 1, "see samples/cases")
            return
        with cases_of(text, lib.rules, block.symptom) as cases:
            for condition in list(wanted):
                outcomes = [evaluate(condition, case) for case in cases]
                if any(o.value is True for o in outcomes):
                    del wanted[condition]
                elif outcomes:
                    told[condition] = outcomes[-1].why
    for item in at.items():
        if item.value in wanted:
            why = told.get(str(item.value), "")
            hint = f"{why}: change the condition, or add the lines to a `log match` block" if why else "add a log"
            reader.fault("F308", "no log block of this finding satisfies this `must`", item, hint)


def _all_known(text: str, lib: Library) -> bool:
    """Whether all signals of a condition exist (the others have been told already)."""
    return all(signal in lib.rules for signal, _ in names(parse_condition(text)).signals)
