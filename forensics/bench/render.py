"""Bench results as text, Markdown (docs/accuracy.md) or JSON."""

from __future__ import annotations

import json

from forensics.bench.left_out import HeldOut
from forensics.bench.run import STRONG, Answer
from forensics.bench.score import Scores, Share, confusions, misses, place, score
from forensics.frozen import frozen

ROWS = (
    ("top-1", "top1"),
    ("top-3", "top3"),
    ("modest where the log has not enough", "modest"),
    ("healthy without hypothesis", "healthy"),
    ("first-failure line (±2)", "line"),
    ("first-failure rank", "rank"),
    ("stage", "stage"),
    ("guilty rank named", "guilty"),
    ("likely or better, of those with enough", "confident"),
    ("established, of those with enough", "established"),
)


@frozen
class Results:
    """All answers, those with the case's own cause left out, and those of held-out cases (empty if not asked for)."""

    answers: tuple[Answer, ...]
    left_out: tuple[Answer, ...] = ()
    held_out: tuple[HeldOut, ...] = ()

    def groups(self) -> list[tuple[str, list[Answer]]]:
        """Real logs and rendered ones apart, then both."""
        groups = [(o, [a for a in self.answers if a.case.origin == o]) for o in ("real", "rendered")]
        return [*[g for g in groups if g[1]], ("all", list(self.answers))]

    def caught(self) -> tuple[Share, Share, Share]:
        """Held-out cases whose cause is still first; the same of those that lost no wording, and of those that did."""
        first = [(place(h.answer) == 1, h.wordings) for h in self.held_out]
        groups = ([ok for ok, _ in first], [ok for ok, n in first if not n], [ok for ok, n in first if n])
        whole, unchanged, poorer = (Share(sum(g), len(g)) for g in groups)
        return whole, unchanged, poorer

    def caught_informed(self) -> tuple[Share, Share]:
        """The same with the wordings that were found in the program: all held-out cases, and those that lost one."""
        first = [(place(h.informed) == 1, h.wordings) for h in self.held_out]
        whole, poorer = ([ok for ok, _ in first], [ok for ok, n in first if n])
        return Share(sum(whole), len(whole)), Share(sum(poorer), len(poorer))

    def caught_drafted(self) -> Share:
        """Held-out cases whose cause is first where it is known from drafts of its other logs alone."""
        caught = [place(h.drafted) == 1 for h in self.held_out]
        return Share(sum(caught), len(caught))

    def wordings_lost(self) -> Share:
        """Of the wordings that only the held-out log shows, those that were found in the program."""
        return Share(sum(h.read for h in self.held_out), sum(h.wordings for h in self.held_out))

    def unknown(self) -> Share:
        """Cases whose cause was left out and that got `likely` or better all the same: each is a fault."""
        wrong = [a for a in self.left_out if a.verdict in STRONG]
        return Share(len(wrong), len(self.left_out))


def text(results: Results) -> str:
    """Plain table, confusions and every miss."""
    names = [name for name, _ in results.groups()]
    scores = [score(answers) for _, answers in results.groups()]
    lines = [f"{'':42}" + "".join(f"{n:>18}" for n in names)]
    lines += [f"{label:42}" + "".join(f"{_cell(getattr(s, key)):>18}" for s in scores) for label, key in ROWS]
    for word in ("established", "likely", "possible"):
        lines.append(f"{'precision of ' + word:42}" + "".join(f"{_cell(s.precision[word]):>18}" for s in scores))
    if results.left_out:
        lines.append(f"{'unknown cause called likely or better':42}{_cell(results.unknown()):>18}")
        lines += [f"  {a.case.id}: {a.top} ({a.verdict})" for a in results.left_out if a.verdict in STRONG]
    if results.held_out:
        whole, unchanged, poorer = results.caught()
        lines.append(f"{'cause first without its own log':42}{_cell(whole):>18}")
        lines.append(f"{'  no wording is this log alone':42}{_cell(unchanged):>18}")
        lines.append(f"{'  lost the wordings of this log alone':42}{_cell(poorer):>18}")
        informed, regained = results.caught_informed()
        lines.append(f"{'with the wordings found in the program':42}{_cell(informed):>18}")
        lines.append(f"{'  of logs that lost a wording':42}{_cell(regained):>18}")
        lines.append(f"{'from untouched drafts of its other logs':42}{_cell(results.caught_drafted()):>18}")
        lines += [f"  {h}" for h in _uncaught(results)]
    confused = confusions(results.answers)
    if confused:
        lines += ["", "Confusions (truth, said, times):"]
        lines += [f"  {true} / {said} / {n}" for true, said, n in confused]
    missed = misses(results.answers)
    lines += ["", f"Misses: {len(missed)}", *(f"  {m}" for m in missed)]
    return "\n".join(lines) + "\n"


def markdown(results: Results, title: str = "Accuracy") -> str:
    """The page docs/accuracy.md."""
    names = [name for name, _ in results.groups()]
    scores = [score(answers) for _, answers in results.groups()]
    lines = [f"# {title}", "", "Generated by `forensics bench`; do not edit. How: ARCHITECTURE.md.", ""]
    lines += [
        "Every case is analyzed under a neutral name. Real logs come from servers that ran; rendered ones are composed",
        "from the program's own message formats and public facts, so they test parsing and reasoning.",
        "Findings that were written with a case at hand find it again: for the shipped samples the figures are an",
        "upper bound. Cases of your own tell more: `forensics bench DIR`.",
        "",
        "| | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
    ]
    lines += [f"| {label} | " + " | ".join(_cell(getattr(s, key)) for s in scores) + " |" for label, key in ROWS]
    for word in ("established", "likely", "possible"):
        lines.append(f"| precision of *{word}* | " + " | ".join(_cell(s.precision[word]) for s in scores) + " |")
    lines += ["", "## What counts as right", "", *_rules()]
    if results.left_out:
        lines += ["", "## Unknown causes", "", _unknown_sentence(results.unknown())]
        lines += [f"- {a.case.id}: {a.top} ({a.verdict})" for a in results.left_out if a.verdict in STRONG]
    if results.held_out:
        lines += ["", "## Held-out logs", "", _held_sentence(results), "", *(f"- {h}" for h in _uncaught(results))]
    confused = confusions(results.answers)
    lines += ["", "## Confusions", ""]
    lines += [f"- {true}: {said} was put first ({n})" for true, said, n in confused] or ["None."]
    missed = misses(results.answers)
    lines += ["", "## Misses", "", *([f"- {m}" for m in missed] or ["None."])]
    return "\n".join(lines) + "\n"


def as_json(results: Results) -> str:
    """All figures and answers."""
    body = {
        "groups": {name: _scores(score(answers)) for name, answers in results.groups()},
        "leave_one_cause_out": _share(results.unknown()) if results.left_out else None,
        "leave_one_case_out": [_share(s) for s in results.caught()] if results.held_out else None,
        "leave_one_case_out_informed": [_share(s) for s in results.caught_informed()] if results.held_out else None,
        "leave_one_case_out_drafted": _share(results.caught_drafted()) if results.held_out else None,
        "confusions": [{"truth": t, "said": s, "n": n} for t, s, n in confusions(results.answers)],
        "misses": misses(results.answers),
        "cases": [_answer(a) for a in results.answers],
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _rules() -> list[str]:
    from forensics.bench import score as scoring

    text = (scoring.__doc__ or "").strip().split("\n\n", 1)[1]
    return text.splitlines()


def _held_sentence(results: Results) -> str:
    whole, unchanged, poorer = results.caught()
    informed, regained = results.caught_informed()
    found = results.wordings_lost()
    return (
        "Each log of a cause with two or more, diagnosed with the other logs in its finding and without every wording "
        f"that no other log of the cause shows: the cause is still first in {_cell(whole)}. Logs that lost no wording "
        f"so: {_cell(unchanged)}; logs that did: {_cell(poorer)}. A wording known from elsewhere goes too, so this is "
        "a lower bound.\n\nA wording that `tools/check_wordings.py` found in the file of the release that its rule "
        f"names was read in the program, not in the log: {_cell(found)} of the wordings so lost. With those kept, and "
        f"no other: {_cell(informed)}; of the logs that lost a wording: {_cell(regained)}.\n\nWithout the finding, "
        "without the rules that only it names, and with what `forensics kb new` drafts from the other logs, untouched "
        f"by anybody: {_cell(results.caught_drafted())}. A draft holds its log's own words and points at other checks "
        "of the same kind, function, names or part; the list of kinds was written with some of these logs at hand. "
        "What no draft catches has other words at another place: that two such logs have one cause is what a person "
        "knows and a log does not say."
    )


def _uncaught(results: Results) -> list[str]:
    missed = [h for h in results.held_out if place(h.answer) != 1 or place(h.informed) != 1]
    return [
        f"{h.answer.case.id}: {h.answer.case.cause}; {h.answer.top or 'nothing'} is first" + _otherwise(h)
        for h in missed
    ]


def _otherwise(held: HeldOut) -> str:
    """By what else a held-out log is caught."""
    by = [("the program's wordings", held.informed), ("drafts", held.drafted)]
    caught = [name for name, answer in by if place(answer) == 1]
    return f"; caught with {' and with '.join(caught)}" if caught else ""


def _unknown_sentence(share: Share) -> str:
    return (
        f"With the case's own cause taken out of the knowledge base, {_cell(share)} still got `likely` or better; "
        "each of these is a fault."
    )


def _answer(a: Answer) -> dict[str, object]:
    return {
        "case": a.case.id,
        "cause": a.case.cause,
        "enough": a.case.enough,
        "hypotheses": [{"name": n, "verdict": v, "kind": k} for n, v, k in a.hypotheses],
        "risks": list(a.risks),
        "line": a.line,
        "rank": a.rank,
        "stage": a.stage,
    }


def _scores(s: Scores) -> dict[str, object]:
    figures: dict[str, object] = {key: _share(getattr(s, key)) for _, key in ROWS}
    figures["precision"] = {word: _share(share) for word, share in s.precision.items()}
    return figures


def _share(share: Share) -> dict[str, object]:
    return {"right": share.right, "n": share.n, "percent": share.percent}


def _cell(share: Share) -> str:
    return f"{share.percent} % (n={share.n})" if share.n else "-"
