"""What conditions come to over a launch's course: silences, series, attempts, the stated symptom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from condition_cases import LOG, RULES, case
from rule_cases import case_of, facts, failure

from forensics.engine.table import Series
from forensics.rulebook.evaluate import evaluate
from forensics.schema.rank import Rank


def test_silence() -> None:
    start = evaluate("sig-a", case()).witnesses and case().table.time_of(0)
    assert start is not None
    quiet = case(silences=((Rank.parse("TP1"), start + 1, start + 701), (None, start + 7, start + 60)))
    assert evaluate("silence > 9min on some rank", quiet).value is True
    assert evaluate("silence > 9min on rank TP0", quiet).value is False
    assert evaluate("silence > 9min on rank TP1", quiet).value is True
    assert evaluate("silence > 9min on some rank before sig-b", quiet).value is True
    assert evaluate("silence > 50s before sig-b", quiet).value is True
    assert evaluate("silence > 20min", quiet).value is False
    assert evaluate("silence > 9min before sig-c", quiet).value is False
    assert evaluate("silence > 1s", case("alpha happened\nend\n")).value is None


def series(kind: str, **columns: list[float]) -> Series:
    size = len(next(iter(columns.values())))
    whole = np.arange(size, dtype=np.int64)
    return Series(
        kind,
        np.ones(size, np.int64),
        np.zeros(size, np.int16),
        whole + 1,
        whole.astype(float),
        np.zeros(size, np.int16),
        {k: np.array(v, float) for k, v in columns.items()},
    )


def test_series() -> None:
    at = case()
    at.table.series["decode"] = series(
        "decode", throughput=[100.0] * 4 + [60.0] * 4 + [20.0] * 4, accept_len=[1.0] * 12, queue=[1.0] * 12
    )
    at.table.series["prefill"] = series("prefill", cached_tokens=[0.0, 0.0, 5.0])
    assert evaluate("series throughput falls", at).value is True
    assert evaluate("series throughput rises", at).value is False
    assert evaluate("series queue falls", at).value is False
    assert evaluate("series accept_len <= 1.05", at).value is True
    assert evaluate("series cached_tokens = 0", at).value is True
    assert evaluate("series cached_tokens falls", at).value is None
    assert evaluate("series cuda_graph = 0", at).value is None
    at.table.series["decode"] = series("decode", cuda_graph=[1.0, 1.0, 0.0])
    assert evaluate("series cuda_graph > 0 and series cuda_graph < 1", at).value is True


def test_tried() -> None:
    here = (failure(2, "TP1", mechanism="assert"),)
    same = case(facts=facts(args__fp8_gemm_runner_backend="cutlass"), failures=here, first_failure="F1")
    clean = case(facts=facts(args__disable_cuda_graph=True, env__X="0"))
    now = replace(case(failures=here, first_failure="F1"), earlier=(same, clean))
    assert evaluate("tried --fp8-gemm-backend=cutlass and same failure", now).value is True
    assert evaluate("tried --fp8-gemm-backend=triton and same failure", now).value is False
    assert evaluate("tried --disable-cuda-graph and same failure", now).value is False
    assert evaluate("tried --disable-cuda-graph and no failure", now).value is True
    assert evaluate("tried X=0", now).value is True
    assert evaluate("tried X=0 and same failure", case()).value is None


def test_symptom() -> None:
    stated = case_of(LOG, *RULES, symptom="garbage")
    assert evaluate("symptom garbage", stated).value is True
    assert evaluate("symptom hang", stated).value is False
    assert "--symptom" in evaluate("symptom hang", case()).settle
