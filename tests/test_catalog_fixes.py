"""The catalog of flags, and fixes rewritten for the releases that a log can come from."""

from __future__ import annotations

import pytest

from forensics.schema.facts import VersionInterval
from forensics.schema.finding import FixStep
from forensics.timeline.catalog import catalog, check_fix


def flag(name, value=None, **more):
    return FixStep("flag", "set", name, value, runnable=True, **more)


def shown(steps):
    return [(s.kind, s.name, s.value, s.versions) for s in steps]


def test_lifetimes_claim_only_what_was_read():
    known = catalog()
    life = known.flag_lifetime("--fp8-gemm-backend")
    assert (life.first, life.last, life.low) == ("0.5.6.post2", None, "0.5.6.post1.dev0")
    assert known.exists(life, "0.5.6") is False
    assert known.exists(life, "0.5.6.post1") is None
    assert known.exists(life, "0.5.6.post2") is True
    assert known.exists(life, "9.0.0") is None


def test_spellings_choices_and_defaults():
    known = catalog()
    assert known.flag("--tp")[0] == "--tp-size"
    assert known.flag("--tensor-parallel-size")[0] == "--tp-size"
    assert known.dest("--fp8-gemm-backend") == "fp8_gemm_runner_backend"
    assert known.takes_value("--disable-cuda-graph") is False
    assert known.takes_value("--no-such-flag") is None
    assert "flashinfer_cutlass" in known.choices("--fp8-gemm-backend", "0.5.10")
    assert "flashinfer_cutlass" not in known.choices("--fp8-gemm-backend", "0.5.9")
    assert known.default("--mamba-full-memory-ratio", "0.5.12") == 0.9
    assert known.renames("--nsa-prefill-backend").new == ("--dsa-prefill-backend",)
    assert known.before("0.5.10") == "0.5.10rc0"
    assert known.after("0.5.8.post1") == "0.5.9"


def test_a_flag_renamed_inside_the_interval_gives_both_spellings():
    found = check_fix(flag("--dsa-prefill-backend", "flashmla_sparse"), VersionInterval("0.5.8", "0.5.17"))
    assert shown(found) == [
        ("flag", "--nsa-prefill-backend", "flashmla_sparse", "<=0.5.12.post1"),
        ("flag", "--dsa-prefill-backend", "flashmla_sparse", ">=0.5.13"),
    ]


def test_a_step_that_all_releases_understand_stays_as_it_is():
    step = flag("--attention-backend", "triton")
    assert check_fix(step, VersionInterval("0.4.5", "0.5.23")) == (step,)


def test_a_missing_flag_is_dropped_with_its_reason():
    (found,) = check_fix(flag("--fp8-gemm-backend", "triton"), VersionInterval("0.5.2", "0.5.3"))
    assert (found.kind, found.runnable) == ("other", False)
    assert "came with sglang 0.5.6.post2" in found.do


def test_values_are_checked_per_release():
    found = check_fix(flag("--attention-backend", "fa4"), VersionInterval("0.4.5", "0.5.9"))
    assert shown(found) == [("flag", "--attention-backend", "fa4", ">=0.5.3rc0")] or found[0].versions.startswith(
        ">=0.5.3"
    )
    (none,) = check_fix(flag("--attention-backend", "fa4"), VersionInterval("0.4.5", "0.4.6"))
    assert "takes no --attention-backend=fa4" in none.do


def test_environment_variables_follow_their_names():
    step = FixStep("env", "set", "SGLANG_ENABLE_JIT_DEEPGEMM", "0")
    names = [(s.name, s.versions) for s in check_fix(step, VersionInterval("0.4.6", "0.5.9"))]
    assert names[0][0] == "SGL_ENABLE_JIT_DEEPGEMM"
    assert names[1][0] == "SGLANG_ENABLE_JIT_DEEPGEMM"
    foreign = FixStep("env", "set", "NCCL_DEBUG", "INFO")
    assert check_fix(foreign, VersionInterval("0.5.9", None)) == (foreign,)


@pytest.mark.parametrize(
    "step", [FixStep("package", "at-least", "sglang", version="0.5.9"), FixStep("host", do="look")]
)
def test_other_steps_pass(step):
    assert check_fix(step, VersionInterval("0.5.8", "0.5.8")) == (step,)


def test_a_step_for_other_releases_is_dropped():
    (found,) = check_fix(flag("--attention-backend", "triton", versions=">=0.5.20"), VersionInterval("0.5.8", "0.5.9"))
    assert "meant for sglang >=0.5.20" in found.do


def test_a_flag_that_needs_a_value_now_is_not_runnable():
    (found,) = check_fix(flag("--enable-ep-moe"), VersionInterval("0.5.9", "0.5.9"))
    assert (found.name, found.runnable) == ("--ep-size", False)


def test_development_build_takes_the_release_before():
    interval = VersionInterval("0.5.8.post2.dev418+g1a2b3c4d", None, "0.5.8.post2.dev418+g1a2b3c4d")
    found = check_fix(flag("--fp8-gemm-backend", "triton"), interval)
    assert [s.name for s in found] == ["--fp8-gemm-backend"]


@pytest.mark.parametrize("name", ["GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "CUDA_DEVICE_MAX_CONNECTIONS", "DG_CACHE_DIR",
                                  "HF_HUB_OFFLINE", "CUDA_MODULE_LOADING"])  # fmt: skip
@pytest.mark.parametrize("interval", [VersionInterval("0.3.3", "0.4.1"), VersionInterval("0.5.23"), VersionInterval()])
def test_a_variable_of_other_software_is_bound_to_no_release_of_sglang(name, interval):
    step = FixStep("env", "set", name, "<routed interface>")
    assert check_fix(step, interval) == (step,)


def test_a_variable_of_sglang_itself_stays_bound_to_its_releases_and_the_reason_stands_once():
    step = FixStep("env", "set", "SGLANG_ENABLE_ASYNC_ASSERT", "1")
    (found,) = check_fix(step, VersionInterval("0.4.0", "0.4.5"))
    assert found.kind == "other" and found.do.startswith("not applicable here: set SGLANG_ENABLE_ASYNC_ASSERT=1 (")
    reason = found.do.partition("(")[2].rstrip(")")
    assert reason and reason not in found.note
