"""Facts stand where the log states them; unknown stays unknown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from forensics.engine.scan import scan
from forensics.errors import InputError
from forensics.timeline.envreport import read_env_report
from forensics.timeline.facts import collect_facts
from forensics.timeline.facts_gpu import family_of, known_gpu, shared_family

SAMPLES = Path(__file__).parent.parent / "samples"


@pytest.fixture
def facts(tmp_path):
    def read(text: str, reports=()):
        path = tmp_path / "server.log"
        path.write_text(text)
        table = scan([path])
        return collect_facts(table, np.arange(len(table)), (), reports)

    return read


def sample(name: str):
    table = scan([SAMPLES / name])
    return table, collect_facts(table, np.arange(len(table)), ())


def test_every_argument_span_points_at_its_text():
    table, found = sample("healthy/gpu2-tp2_healthy/log.txt")
    data = table.sources[0].pread(0, 1 << 20)
    arguments = {n.removeprefix("args."): f for n, f in found.items() if n.startswith("args.") and f.how == "stated"}
    assert len(arguments) > 400
    for name, fact in arguments.items():
        assert data[fact.where.byte_start : fact.where.byte_end].startswith(name.encode() + b"="), name
        line = data.split(b"\n")[fact.where.line - 1].decode()
        assert line[fact.where.column - 1 :].startswith(name + "=")


def test_dict_form_spans_start_at_the_key():
    table, found = sample("healthy/cpu-a_healthy_tp1/log.txt")
    data = table.sources[0].pread(0, 1 << 20)
    where = found["args.tp_size"].where
    assert data[where.byte_start : where.byte_end] == b"'tp_size': 1"
    assert found["launch.device"].value == "cpu"
    assert found["gpu.family"].value == "cpu"
    assert found["feature.cuda_graph"].value is False


def test_real_gpu_run():
    _, found = sample("healthy/gpu2-tp2_healthy/log.txt")
    expected = {
        "launch.ranks": 2,
        "launch.device": "cuda",
        "launch.role": "server",
        "model.architecture": "Qwen2ForCausalLM",
        "kv.dtype": "torch.bfloat16",
        "kv.tokens": 65536,
        "version.nccl": "2.28.9",
        "feature.cuda_graph": True,
        "feature.moe": False,
        "feature.overlap": True,
    }
    assert {name: found[name].value for name in expected} == expected
    assert "gpu.name" not in found
    assert "launch.command" not in found


def test_launch_with_command_environment_and_dump():
    _, found = sample("cases/saga/attempt-1.log")
    assert found["launch.command"].value.startswith("python3 -m sglang.launch_server --model-path")
    assert found["gpu.family"].value == "blackwell"
    assert found["feature.deepgemm"].value is True
    assert found["feature.dsa"].value is True
    assert found["weights.quantization"].value == "nvfp4"


def test_without_a_dump_the_command_gives_the_arguments(facts):
    found = facts(
        "+ export SGLANG_ENABLE_JIT_DEEPGEMM=0 NCCL_DEBUG=INFO\n"
        "+ CUDA_LAUNCH_BLOCKING=1 python3 -m sglang.launch_server --model-path org/Big-Model-FP8 --tp 8 "
        "--kv-cache-dtype=fp8_e4m3 --trust-remote-code --cuda-graph-bs 1 2 4 --mem-fraction-static 0.85\n"
        "ModuleNotFoundError: No module named 'sgl_kernel'\n"
    )
    assert found["args.tp_size"].value == 8
    assert found["args.kv_cache_dtype"].value == "fp8_e4m3"
    assert found["args.trust_remote_code"].value is True
    assert found["args.mem_fraction_static"].value == 0.85
    assert found["model.name"].value == "Big-Model-FP8"
    assert found["env.CUDA_LAUNCH_BLOCKING"].value == "1"
    assert found["env.NCCL_DEBUG"].value == "INFO"
    assert found["feature.deepgemm"].value is False
    assert found["launch.ranks"].value == 8


def test_a_command_over_several_lines(facts):
    found = facts(
        "$ python -m sglang.launch_server \\\n    --model-path /models/a \\\n    --tp 2 \\\n    --quantization fp8\n"
        "[2026-01-01 00:00:00] Load weight begin. avail mem=70.0 GB\n"
    )
    assert found["args.tp_size"].value == 2
    assert found["args.quantization"].value == "fp8"


def test_prose_that_names_a_command_is_none(facts):
    found = facts(
        "[2026-01-01 00:00:00] It is recommended to run `python -m sglang.launch_server --tp 4` again.\n"
        "  Example: sglang serve --model-path <model> [options]\n"
    )
    assert "launch.command" not in found
    assert not [n for n in found if n.startswith("args.")]


def test_truncated_dump_keeps_what_is_there(facts):
    found = facts(
        "[2026-01-01 00:00:00] server_args=ServerArgs(model_path='/m/x', tp_size=4, quantization='modelopt_fp4', served_mod"
    )
    assert found["args.tp_size"].value == 4
    assert found["args.quantization"].value == "modelopt_fp4"
    assert "args.served_mod" not in found


def test_gpu_facts_from_messages(facts):
    found = facts(
        "[2026-01-01 00:00:00 TP0] Using default MoE kernel config. Config file not found at "
        "/x/configs/E=128,N=384,device_name=NVIDIA_H100_80GB_HBM3.json\n"
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 240000, Hardware limit: 232448.\n"
    )
    assert found["gpu.name"].value == "NVIDIA H100 80GB HBM3"
    assert found["gpu.sm"].value == 90
    assert found["gpu.capability"].value == 9.0
    assert found["gpu.memory_gb"].value == 80
    assert found["gpu.smem_per_block"].value == 232448
    assert found["gpu.name"].how.startswith("inferred")


def test_replicas_and_dp_attention_count_ranks(facts):
    dump = "[2026-01-01 00:00:00] server_args=ServerArgs(model_path='/m', tp_size=4, pp_size=2, dp_size=2, enable_dp_attention={})\n"
    assert facts(dump.format(False))["launch.ranks"].value == 16
    assert facts(dump.format(True))["launch.ranks"].value == 8


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (
            "cases/saga/check_env.txt",
            {"gpu.count": 8, "gpu.sm": 120, "gpu.family": "blackwell", "version.torch": "2.9.1+cu130", "host.topology": "pcie",
             "version.sglang": "0.5.8.post2.dev418+g7c1d9e204", "version.driver": "590.48.01"},
        ),
        ("env/gpu2-check_env/log.txt", {"gpu.count": 2, "gpu.name": "NVIDIA H200", "host.topology": "nvlink", "version.sgl_kernel": "0.4.5"}),
        ("env/gpu-env.txt", {"gpu.name": "NVIDIA H200", "gpu.memory_gb": 140.4, "version.driver": "580.159.04", "version.transformers": "5.17.0"}),
    ],
)  # fmt: skip
def test_environment_reports(report, expected):
    found = {f.name: f.value for f in read_env_report(SAMPLES / report)}
    assert {name: found.get(name) for name in expected} == expected


def test_reports_fill_what_the_log_does_not_state(facts):
    found = facts("[2026-01-01 00:00:00] sglang is using nccl==2.27.3\n", (SAMPLES / "cases/saga/check_env.txt",))
    assert found["version.nccl"].value == "2.27.3"
    assert found["gpu.sm"].value == 120
    assert found["gpu.sm"].where.path.endswith("check_env.txt")


def test_unreadable_report_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match="cannot read the environment report"):
        read_env_report(tmp_path / "absent.txt")


@pytest.mark.parametrize(
    ("name", "sm", "family"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, "blackwell"), ("NVIDIA A10G", 86, "ampere"),
        ("NVIDIA A100-SXM4-80GB", 80, "ampere"), ("NVIDIA H20", 90, "hopper"), ("NVIDIA H200", 90, "hopper"),
        ("NVIDIA L40S", 89, "ada"), ("NVIDIA L4", 89, "ada"), ("NVIDIA GB200", 100, "blackwell"),
        ("NVIDIA B300 SXM6 AC", 103, "blackwell"), ("NVIDIA GB10", 121, "blackwell"), ("Tesla V100-SXM2-32GB", 70, "volta"),
        ("AMD Instinct MI300X", 0, "amd"), ("NVIDIA GeForce RTX 5090", 120, "blackwell"), ("NVIDIA Thor", 110, "blackwell"),
    ],
)  # fmt: skip
def test_gpu_names(name, sm, family):
    gpu = known_gpu(name)
    assert (gpu.sm, gpu.family) == (sm, family)


def test_limits_name_a_family_only_where_it_is_unique():
    assert shared_family(166912) == "ampere"
    assert shared_family(101376) == ""
    assert family_of(87) == "ampere"
    assert family_of(55) == ""
