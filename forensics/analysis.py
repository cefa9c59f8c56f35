"""All stages in order: from named inputs to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from forensics.diagnose.baseline import compare_baseline
from forensics.diagnose.diagnose import diagnose
from forensics.diagnose.headline import headline
from forensics.diagnose.past import read_past
from forensics.diagnose.places import Places
from forensics.engine.begin import Begun, begin
from forensics.engine.table import EventTable
from forensics.errors import ForensicsError, UsageError
from forensics.frozen import frozen
from forensics.grammar.block_regions import FRAMES_LEFT_OUT, LEFT_OUT, MAX_REGION, MAX_STACK
from forensics.grammar.blocks import find_blocks
from forensics.ingest.bundle import is_bundle, reports_of
from forensics.knowledge.store import Knowledge, load
from forensics.output.mask import mask
from forensics.rulebook.case import Case
from forensics.rulebook.match import match_rules
from forensics.rulebook.program import program_of
from forensics.schema.block import Block
from forensics.schema.options import Options
from forensics.schema.report import ProblemInfo, Report, SourceInfo, Tool
from forensics.timeline import facts_messages, sieve, version
from forensics.timeline.failures import find_failures
from forensics.timeline.launches import LAUNCHES, NEWEST, OLDEST, find_launches
from forensics.timeline.window import leaves_out
from forensics.version import VERSION


@frozen
class Reading:
    """One set of inputs, read: the table, its blocks, and one case for each launch (oldest first)."""

    table: EventTable
    blocks: tuple[Block, ...]
    cases: tuple[Case, ...]
    problems: tuple[ProblemInfo, ...]


def analyze(names: Sequence[str], options: Options | None = None, begun: Begun | None = None) -> Report:
    """Analyze one or many inputs. Raises ForensicsError where nothing usable was read (exit code 2). `begun`: their
    scan, where the caller has begun it already."""
    options = options or Options()
    knowledge = load(options)
    return report(read(names, options, knowledge, begun=begun), options, knowledge)


def report(reading: Reading, options: Options, knowledge: Knowledge) -> Report:
    """The report on inputs that were read."""
    problems = [*reading.problems, *(problem_info(p) for p in knowledge.problems)]
    baseline = _baseline(options, knowledge, problems)
    places = Places(
        (reading.table, *((baseline.table,) if baseline else ())), masker(options, knowledge.config.secrets)
    )
    past = read_past(options.history)
    found = diagnose(reading.cases, knowledge, options, places, baseline.cases if baseline else (), past)
    if found.focus is None and reading.cases:
        raise UsageError(
            f"--launch {options.launch}: the input has {len(reading.cases)} launches",
            hint="`--launch all` lists them",
        )
    if found.coarse:
        message = "the launches differ in too many settings: which of them is nearest was told by their number alone"
        problems.append(ProblemInfo(message=message, code="input-launches"))
    focus = next((c for c in reading.cases if c.launch.id == found.focus), None)
    good = _good(baseline, options, problems) if baseline else None
    compared = compare_baseline(focus, good, places) if good and focus else None
    return Report(
        schema="1",
        tool=Tool(
            version=VERSION,
            rules=len(knowledge.rules),
            findings=len(knowledge.findings),
            deployments=len(knowledge.deployments),
        ),
        sources=[*reading.table.infos, *_further_sources(options, baseline)],
        launches=list(found.launches),
        headline=headline(found.launches, found.focus, options.symptom),
        focus=found.focus,
        symptom=options.symptom,
        attempts=list(found.attempts),
        baseline=compared,
        problems=problems,
    )


def read(
    names: Sequence[str], options: Options, knowledge: Knowledge, prefix: str = "L", begun: Begun | None = None
) -> Reading:
    """Inputs to cases. `prefix` names the launches of inputs that are not the ones under analysis (`B1` …)."""
    with begun or begin(names, options) as started:
        _make_ready(knowledge)
        table = started.scan.table()
    options = replace(options, env=(*options.env, *bundled_reports(names)))
    return read_table(table, options, knowledge, prefix, tuple(started.inputs.problems))


def _make_ready(knowledge: Knowledge) -> None:
    """What every log needs and no log changes, made while another process may still be reading."""
    program_of(knowledge.rules)
    for stage in (sieve, facts_messages, version):
        stage.make_ready()


def read_table(
    table: EventTable,
    options: Options,
    knowledge: Knowledge,
    prefix: str = "L",
    problems: tuple[ProblemInfo, ...] = (),
) -> Reading:
    """A scanned table to cases, for callers that opened their inputs themselves (`forensics watch`)."""
    blocks = find_blocks(table)
    rules = knowledge.rules
    earlier: list[Case] = []
    windowed = leaves_out(table, options)
    launches = find_launches(table, blocks, options)
    problems = (*problems, *_left_out(table, len(launches)), *_not_asked(windowed))
    for launch in launches:
        named = replace(launch, id=prefix + launch.id.removeprefix("L"))
        signals = match_rules(rules, table, blocks, named)
        full = find_failures(table, blocks, named, signals, rules)
        earlier.append(Case(table, blocks, full, signals, rules, symptom=options.symptom, earlier=tuple(earlier)))
    return Reading(table, blocks, tuple(earlier), problems)


def _left_out(table: EventTable, described: int) -> list[ProblemInfo]:
    """What was counted and not read, as problems of the input."""
    told = (
        (FRAMES_LEFT_OUT, f"of stacks with more than {MAX_STACK} lines only the ends were read: {{}} lines left out"),
        (LEFT_OUT, f"of {MAX_REGION}+ lines of tracebacks and dumps only the ends were read: {{}} lines left out"),
    )
    found = [(text, table.memo.get(key)) for key, text in told]
    problems = [ProblemInfo(message=text.format(f"{n:,}"), code="input-blocks") for text, n in found if n]
    launches = int(table.memo.get(LAUNCHES, described))
    if launches > described:
        message = f"of {launches:,} launches the first {OLDEST} and the last {NEWEST} are described"
        hint = "--launch N describes the one that you name, too"
        problems.append(ProblemInfo(message=message, code="input-launches", hint=hint))
    return problems


def _not_asked(windowed: bool) -> list[ProblemInfo]:
    message = "lines whose time lies outside --since and --until were left out"
    return [ProblemInfo(message=message, code="input-window")] if windowed else []


def bundled_reports(names: Sequence[str]) -> tuple[Path, ...]:
    """Environment reports inside the bundles among the names."""
    paths = [Path(n) for n in dict.fromkeys(str(n) for n in names) if n != "-"]
    return tuple(report for p in paths if p.is_file() and is_bundle(p) for report in reports_of(p))


def masker(options: Options, extra: Sequence[str] = ()) -> Callable[[str], str]:
    """What hides secrets in every text that is shown; `extra` are further patterns of forensics.toml."""
    return partial(mask, extra=tuple(extra)) if options.mask else (lambda text: text)


def problem_info(problem: object) -> ProblemInfo:
    """A problem of any stage as the report states it."""
    if isinstance(problem, ForensicsError):
        span = problem.span
        return ProblemInfo(
            message=problem.message,
            path=span.path if span else None,
            line=span.line if span else None,
            column=span.column if span else None,
            code=problem.code,
            hint=problem.hint,
        )
    span = getattr(problem, "span", None)
    return ProblemInfo(
        message=str(getattr(problem, "message", problem)),
        path=getattr(span, "path", None) or getattr(problem, "path", None),
        line=getattr(span, "line", None) or getattr(problem, "line", None),
        column=getattr(span, "column", None) or getattr(problem, "column", None),
        code=str(getattr(problem, "code", "")),
        hint=str(getattr(problem, "hint", "")),
    )


def _baseline(options: Options, knowledge: Knowledge, problems: list[ProblemInfo]) -> Reading | None:
    """The good run that the caller names; a bad file is a problem, it does not stop the analysis."""
    if options.baseline is None:
        return None
    try:
        return read([str(options.baseline)], replace(options, symptom=None, since=None, until=None), knowledge, "B")
    except ForensicsError as error:
        problems.append(problem_info(error))
        return None


def _good(baseline: Reading, options: Options, problems: list[ProblemInfo]) -> Case | None:
    """The last launch of the baseline that works; what is wrong with a baseline that has none is told."""
    servers = [c for c in baseline.cases if c.launch.reached != "config" or c.launch.facts]
    works = [c for c in servers if c.launch.first_failure is None]
    if works:
        return works[-1]
    what = "failed itself, so a difference from it proves little" if servers else "holds no launch of a server"
    hint = "name the log of a launch that served"
    problems.append(ProblemInfo(path=str(options.baseline), message=f"the baseline {what}", code="baseline", hint=hint))
    return servers[-1] if servers else None


def _further_sources(options: Options, baseline: Reading | None) -> list[SourceInfo]:
    """Explicit inputs besides the logs: the environment report, the baseline and the history."""
    infos = [i.model_copy(update={"role": "baseline"}) for i in (baseline.table.infos if baseline else ())]

    def add(path: Path | str, role: Literal["environment report", "history"]) -> None:
        size = Path(path).stat().st_size if Path(path).is_file() else 0
        infos.append(SourceInfo(path=str(path), bytes=size, lines=0, role=role))

    for report in options.env:
        add(report, "environment report")
    if options.history:
        add(options.history, "history")
    return infos
