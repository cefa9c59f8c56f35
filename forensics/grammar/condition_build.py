"""From Lark's tree to the typed tree of a condition, with errors that point at the word that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from lark import Token, Tree

from forensics.grammar.condition_tree import (
    Absent,
    And,
    Arithmetic,
    Before,
    CaptureRef,
    Compare,
    Count,
    FactRef,
    FirstFailureHas,
    Known,
    Level,
    Member,
    Node,
    Not,
    Or,
    Place,
    Quantifier,
    Quantity,
    Reached,
    Search,
    Seen,
    Silence,
    State,
    Symptom,
    Term,
    Text,
    Trend,
    Tried,
    Truth,
)
from forensics.rulebook.captures import SIZE_UNITS, TIME_UNITS, split_quantity
from forensics.rulebook.patterns import BadPattern, compiled
from forensics.rulebook.words import FACT_GROUPS
from forensics.schema.launch import ENDINGS, PHASES, STAGES
from forensics.schema.options import SYMPTOMS

Branch = Tree[Token]
Part = Branch | Token
_CAPTURE = re.compile(r"((?:[a-z][a-z0-9]*/)?[a-z][a-z0-9]*(?:-[a-z0-9]+)*)\.([A-Za-z_]\w*)")
_SIGNAL = re.compile(r"(?:[a-z][a-z0-9]*/)?[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_TERMS = {"sum", "product", "negative"}


class BadCondition(ValueError):
    """A condition that parses but means nothing. `place` is the part that is wrong."""

    def __init__(self, message: str, place: Place, hint: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.hint = hint


def place_of(part: Part) -> Place:
    """Offsets of a token or tree."""
    if isinstance(part, Token):
        return part.start_pos or 0, part.end_pos or 0
    return getattr(part.meta, "start_pos", 0), getattr(part.meta, "end_pos", 0)


def tokens(tree: Branch, *types: str) -> list[Token]:
    """Direct tokens of these types."""
    return [c for c in tree.children if isinstance(c, Token) and c.type in types]


class Builder:
    """`captures`: names that stand alone as captures (a rule's `where`); None outside of it."""

    def __init__(self, captures: set[str] | None = None) -> None:
        self.captures = captures

    def condition(self, part: Part) -> Node:
        """A part in the place of a truth value."""
        if isinstance(part, Token):
            return self._bare(part)
        if part.data in _TERMS:
            raise BadCondition("a number is no condition", place_of(part), "compare it: `… < 3`, `… = x`")
        if part.data == "group":
            return self.condition(part.children[0])
        build = cast("Callable[[Branch], Node]", getattr(self, f"_{part.data}"))
        return build(part)

    def _bare(self, token: Token) -> Node:
        text = str(token)
        if token.type != "WORD" or self.captures is not None:
            raise BadCondition(f"`{text}` alone is no condition", place_of(token), "compare it: `… < 3`, `… = x`")
        if is_fact(text):
            return Truth(text, place_of(token))
        return Seen(self._signal(token), None, place_of(token))

    def _signal(self, token: Token) -> str:
        text = str(token)
        if _SIGNAL.fullmatch(text):
            return text
        if _CAPTURE.fullmatch(text):
            raise BadCondition(f"`{text}` is a capture, not a signal", place_of(token), "compare it: `a.x < 3`")
        hint = "signals are rule ids such as `nan-probabilities`; values that stand alone need quotes"
        if "-" in text and "." in text:
            hint = "put blanks around the minus sign"
        raise BadCondition(f"`{text}` is no signal name", place_of(token), hint)

    def _or(self, tree: Branch) -> Node:
        parts = [self.condition(c) for c in tree.children if not _is(c, "OR")]
        return Or(tuple(x for p in parts for x in (p.parts if isinstance(p, Or) else (p,))), place_of(tree))

    def _and(self, tree: Branch) -> Node:
        parts = [self.condition(c) for c in tree.children if not _is(c, "AND")]
        return And(tuple(x for p in parts for x in (p.parts if isinstance(p, And) else (p,))), place_of(tree))

    def _not(self, tree: Branch) -> Node:
        return Not(self.condition(tree.children[-1]), place_of(tree))

    def _quantified(self, tree: Branch) -> Seen:
        word = tokens(tree, "WORD")[0]
        return Seen(self._signal(word), self._on(tree), place_of(tree))

    def _before(self, tree: Branch) -> Node:
        first, second = self._side(tree.children[0]), self._side(tree.children[2])
        if second.on is not None and first.on is None:
            return Before(first, Seen(second.signal, None, second.place), second.on, place_of(tree))
        return Before(first, second, None, place_of(tree))

    def _side(self, part: Part) -> Seen:
        if not isinstance(part, Token) and part.data == "group":
            return self._side(part.children[0])
        node = self.condition(part)
        if not isinstance(node, Seen):
            raise BadCondition("only signals stand beside `before`", place_of(part), "write `a before b`")
        return node

    def _compare(self, tree: Branch) -> Node:
        op = str(tree.children[1]).replace("==", "=")
        left = self.term(tree.children[0])
        right = self.term(tree.children[2], beside=left)
        if isinstance(left, (Quantity, Text)) and isinstance(right, (Quantity, Text)):
            raise BadCondition(
                "both sides are constants", place_of(tree), "name a fact (`args.x`) or a capture (`a.x`)"
            )
        return Compare(op, left, right, place_of(tree))

    def _member(self, tree: Branch) -> Node:
        left = self.term(tree.children[0])
        values = tuple(self.term(c, beside=left) for c in tree.children[1:] if not _is(c, "NOT", "IN"))
        return Member(left, values, bool(tokens(tree, "NOT")), place_of(tree))

    def _search(self, tree: Branch) -> Node:
        pattern = unquoted(tree.children[2])
        try:
            compiled(pattern)
        except BadPattern as error:
            raise BadCondition(str(error), place_of(tree.children[2]), error.hint) from None
        return Search(self.term(tree.children[0]), pattern, place_of(tree))

    def _absent(self, tree: Branch) -> Node:
        return Absent(self._signal(tokens(tree, "WORD")[0]), self._on(tree), place_of(tree))

    def _known(self, tree: Branch) -> Node:
        return Known(self._fact(tokens(tree, "WORD")[0]), place_of(tree))

    def _count(self, tree: Branch) -> Node:
        numbers = [quantity(t) for t in tokens(tree, "QUANTITY")]
        word, op = tokens(tree, "WORD")[0], _op(tree)
        within = numbers[1] if len(numbers) > 1 else None
        return Count(self._signal(word), op, numbers[0], within, self._on(tree), place_of(tree))

    def _silence(self, tree: Branch) -> Node:
        before = tokens(tree, "WORD")
        signal = self._signal(before[0]) if before else ""
        return Silence(_op(tree), quantity(tokens(tree, "QUANTITY")[0]), self._on(tree), signal, place_of(tree))

    def _symptom(self, tree: Branch) -> Node:
        return Symptom(_one_of(tokens(tree, "WORD")[0], SYMPTOMS, "symptom"), place_of(tree))

    def _reached(self, tree: Branch) -> Node:
        return Reached(_one_of(tokens(tree, "WORD")[0], STAGES, "start-up stage"), place_of(tree))

    def _stage(self, tree: Branch) -> Node:
        return self._state(tree, "stage", STAGES + PHASES)

    def _ended(self, tree: Branch) -> Node:
        return self._state(tree, "ended", ENDINGS)

    def _state(self, tree: Branch, subject: str, allowed: tuple[str, ...]) -> Node:
        values = tuple(_one_of(t, allowed, "value") for t in tokens(tree, "WORD"))
        op = _op(tree) if tokens(tree, "CMP") else "="
        if op not in ("=", "!="):
            hint = "use =, != or `in {…}`; `stage reached X` asks how far start-up got"
            raise BadCondition(f"`{op}` has no meaning here", place_of(tokens(tree, "CMP")[0]), hint)
        return State(subject, values, bool(tokens(tree, "NOT")) or op == "!=", place_of(tree))

    def _first(self, tree: Branch) -> Node:
        return FirstFailureHas(self._signal(tokens(tree, "WORD")[0]), place_of(tree))

    def _tried(self, tree: Branch) -> Node:
        name, _, value = str(tokens(tree, "FLAG", "SETTING")[0]).partition("=")
        outcome = "same" if tokens(tree, "SAME") else "none" if tokens(tree, "CLEAN") else ""
        return Tried(name, value.strip('"') if _ else None, outcome, place_of(tree))

    def _trend(self, tree: Branch) -> Node:
        return Trend(str(tokens(tree, "WORD")[0]), "falls" if tokens(tree, "FALLS") else "rises", place_of(tree))

    def _level(self, tree: Branch) -> Node:
        number = quantity(tokens(tree, "QUANTITY")[0])
        return Level(str(tokens(tree, "WORD")[0]), _op(tree), number, place_of(tree))

    def term(self, part: Part, beside: Term | None = None) -> Term:
        """A part in the place of a value. `beside` is the other side: words beside a fact are values."""
        if isinstance(part, Token):
            return self._word(part, beside)
        if part.data in ("sum", "product"):
            return self._folded(part)
        if part.data == "negative":
            inner = self.term(part.children[-1])
            zero = Quantity(0.0, "0", place_of(part))
            if isinstance(inner, Quantity):
                return Quantity(-inner.value, f"-{inner.text}", place_of(part))
            return Arithmetic("-", zero, inner, place_of(part))
        if part.data == "group":
            return self.term(part.children[0], beside)
        raise BadCondition("a value is expected here, not a condition", place_of(part), "take the brackets apart")

    def _folded(self, tree: Branch) -> Term:
        left = self.term(tree.children[0])
        for op, right in zip(tree.children[1::2], tree.children[2::2], strict=True):
            left = Arithmetic(str(op), left, self.term(right), (place_of(tree)[0], place_of(right)[1]))
        for side in (left.left, left.right) if isinstance(left, Arithmetic) else ():
            if isinstance(side, Text):
                raise BadCondition(f"`{side.text}` is no number", side.place, "captures are written `signal.capture`")
        return left

    def _word(self, token: Token, beside: Term | None) -> Term:
        text, place = str(token), place_of(token)
        if token.type == "QUANTITY":
            return quantity(token)
        if token.type in ("STRING", "VERSION"):
            return Text(unquoted(token), place)
        if self.captures is not None:
            if text in self.captures:
                return CaptureRef("", text, place)
            raise BadCondition(f"no capture is named `{text}`", place, "captures: " + ", ".join(sorted(self.captures)))
        if is_fact(text):
            return FactRef(text, place)
        found = _CAPTURE.fullmatch(text)
        if found and (beside is None or not isinstance(beside, FactRef) or "-" in found.group(1)):
            return CaptureRef(found.group(1), found.group(2), place)
        if beside is None and not found:
            hint = f"write `{text}.capture`, a fact such as `args.x`, or turn the comparison around"
            raise BadCondition(f"`{text}` has no value to compare", place, hint)
        return Text(text, place)

    def _fact(self, token: Token) -> str:
        if is_fact(str(token)):
            return str(token)
        groups = ", ".join(f"{g}.…" for g in FACT_GROUPS)
        raise BadCondition(f"`{token}` is no fact", place_of(token), f"facts are named {groups}")

    def _on(self, tree: Branch) -> Quantifier | None:
        for child in tree.children:
            if not isinstance(child, Token) and child.data == "quantifier":
                axes = tokens(child, "AXIS")
                if axes:
                    return Quantifier("named", " ".join(map(str, axes)))
                word = tokens(child, "EVERY", "SOME", "ONE", "FAILING")[0]
                return Quantifier(str(word))
        return None


def is_fact(text: str) -> bool:
    """Whether a word is a fact name: a known group, a dot, a name."""
    group, dot, name = text.partition(".")
    return bool(dot) and bool(name) and group in FACT_GROUPS


def quantity(token: Token) -> Quantity:
    """Number and unit of a token, scaled to bytes or seconds."""
    number, unit = split_quantity(str(token))
    factor = 1.0 if not unit else float(SIZE_UNITS.get(unit) or TIME_UNITS[unit])
    return Quantity((number or 0.0) * factor, str(token), place_of(token))


def unquoted(part: Part) -> str:
    """The text of a word or string token."""
    text = str(part)
    if text.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    return text


def _is(part: Part, *types: str) -> bool:
    return isinstance(part, Token) and part.type in types


def _op(tree: Branch) -> str:
    return str(tokens(tree, "CMP")[0]).replace("==", "=")


def _one_of(token: Token, allowed: tuple[str, ...], what: str) -> str:
    if str(token) not in allowed:
        raise BadCondition(f"`{token}` is no {what}", place_of(token), "one of: " + ", ".join(allowed))
    return str(token)
