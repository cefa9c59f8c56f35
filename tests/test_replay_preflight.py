"""What must hold before a server starts, asked on the host: the server's own Python, flags, GPUs, port, model, disk."""

import sys
from pathlib import Path

import pytest
from replay_kit import FAKE, command, replay, starts

from forensics import analyze
from forensics.replay.base import base_command
from forensics.replay.edits import Change
from forensics.replay.facts import HostFacts, ask_facts, server_python
from forensics.replay.host import Address, Host
from forensics.replay.plan import make_plan
from forensics.replay.preflight import Finding, preflight
from forensics.replay.verify import focus

SAMPLES = Path(__file__).parent.parent / "samples"
GPU = {"name": "NVIDIA B200", "capability": "10.0", "free": 79 << 30, "total": 80 << 30, "smem_per_block": 232448}
FLAGS = {"--dtype": ["auto", "bfloat16", "float16"], "--port": None, "--attention-backend": ["triton", "fa4"]}


@pytest.fixture(scope="module")
def host():
    with Host(Address.parse("local")) as opened:
        yield opened


def facts(**more) -> HostFacts:
    return HostFacts({"sglang": "0.5.17", "gpus": [GPU], "flags": FLAGS, "errors": {}, **more})


def found(host: Host, folder: Path, known: HostFacts, *fixes: str, flags: str = "", launch=None) -> dict[str, Finding]:
    base = base_command(
        None, f"{sys.executable} -m sglang.launch_server --model-path {folder} --port 1 {flags}".strip()
    )
    plan = make_plan(base, [Change.parse(f) for f in fixes or ("--dtype=bfloat16",)])
    return {f.name: f for f in preflight(host, plan, known, launch, str(folder / "runs"))}


def test_the_servers_own_python_tells_the_hosts_facts(host):
    base = base_command(
        None, f"PYTHONPATH={FAKE} FAKE_GPUS='78 12' {sys.executable} -m sglang.launch_server --model-path /m"
    )
    asked = ask_facts(host, base)
    assert asked.sglang == "0.5.17" and asked.data["cuda"] == "13.0" and asked.data["nccl"] == "2.28.9"
    assert asked.data["arch_list"] == ["sm_90", "sm_100"]
    first, second = asked.gpus
    assert (first["capability"], first["smem_per_block"]) == ("10.0", 232448)
    assert (first["free"] >> 30, second["free"] >> 30) == (78, 12)
    assert asked.flags["--dtype"] == ["auto", "half", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("A=1 nohup numactl -N 0 /v/bin/python -m sglang.launch_server", ["env", "A=1", "/v/bin/python", "-c", "x"]),
        ("/v/bin/sglang serve", ["/v/bin/python", "-c", "x"]),
        ("A=1 uv run --frozen python -m sglang.launch_server", ["env", "A=1", "uv", "run", "--frozen", "python", "-c", "x"]),
        ("srun -N1 --gres=gpu:8 env A=1 python -m sglang.launch_server",
         ["env", "A=1", "srun", "-N1", "--gres=gpu:8", "env", "python", "-c", "x"]),
        ("conda run -n sgl python -m sglang.launch_server", ["conda", "run", "-n", "sgl", "python", "-c", "x"]),
        ("exec python -m sglang.launch_server", ["bash", "-c", 'python "$@"', "forensics", "-c", "x"]),
        ("source v/bin/activate\npip list\nA=$HOME python -m sglang.launch_server",
         ["bash", "-c", 'source v/bin/activate\nenv A=$HOME python "$@"', "forensics", "-c", "x"]),
    ],
)  # fmt: skip
def test_the_python_is_asked_where_the_server_would_run(text, asked):
    assert server_python(base_command(None, text), "-c", "x") == asked


def test_a_python_without_sglang_is_refused_and_cannot_be_forced(host, tmp_path):
    asked = ask_facts(host, base_command(None, f"{sys.executable} -S -m sglang.launch_server --model-path /m"))
    bad = found(host, tmp_path, asked)["sglang"]
    assert not bad.ok and not bad.forcible and "No module named 'sglang'" in bad.text and "--launch" in bad.hint
    gone = ask_facts(host, base_command(None, "/no/such/python -m sglang.launch_server --model-path /m"))
    assert "/no/such/python" in gone.why and not found(host, tmp_path, gone)["sglang"].ok


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        ("--no-such-flag=1", "sglang 0.5.17 has no --no-such-flag"),
        ("--attention-backends=fa4", "it has --attention-backend"),
        ("--dtype=float17", "--dtype does not take 'float17' (it takes auto, bfloat16, float16)"),
    ],
)
def test_a_flag_or_choice_that_this_version_lacks_is_refused(host, tmp_path, fix, said):
    bad = found(host, tmp_path, facts(), fix)["flag"]
    assert not bad.ok and said in bad.line()


@pytest.mark.parametrize(
    ("known", "flags", "name", "said"),
    [
        ({"gpus": []}, "", "GPUs", "1 needed, 0 visible"),
        ({"gpus": [GPU]}, "--tp 8", "GPUs", "8 needed, 1 visible"),
        ({"gpus": [GPU] * 8}, "--tp 8 --pp-size 2", "GPUs", "16 needed, 8 visible"),
        ({"gpus": [GPU, {**GPU, "free": 10 << 30}]}, "--tp 2", "GPU memory", "GPU 1 not free (least free: 10.0 GiB)"),
    ],
)
def test_gpus_that_are_too_few_or_busy_are_refused(host, tmp_path, known, flags, name, said):
    bad = found(host, tmp_path, facts(**known), flags=flags)[name]
    assert not bad.ok and said in bad.text and bad.hint


def test_ranks_of_data_parallel_attention_share_the_gpus(host, tmp_path):
    assert found(host, tmp_path, facts(gpus=[GPU] * 8), flags="--tp 8 --dp 8 --enable-dp-attention")["GPUs"].ok
    assert found(host, tmp_path, facts(gpus=[]), flags="--device cpu")["GPUs"].ok


def test_another_architecture_than_the_logs_is_told(host, tmp_path):
    log = SAMPLES / "cases" / "a-gpt-oss-sm120-gather4" / "log.txt"
    launch = focus(analyze([str(log)]))
    bad = found(host, tmp_path, facts(), launch=launch)["architecture"]
    assert not bad.ok and bad.forcible and "the log is of compute capability 12.0, this host has 10.0" in bad.text
    same = {**GPU, "capability": "12.0"}
    assert "architecture" not in found(host, tmp_path, facts(gpus=[same]), launch=launch)


def test_a_model_that_is_not_there_is_refused_and_a_hub_name_is_not_checked(host, tmp_path):
    base = base_command(None, f"{sys.executable} -m sglang.launch_server --model-path /no/model --port 1")
    plan = make_plan(base, [Change.parse("--dtype=bfloat16")])
    model = next(f for f in preflight(host, plan, facts(), None, str(tmp_path)) if f.name == "model")
    assert not model.ok and not model.forcible and "/no/model is not on this host" in model.text
    hub = make_plan(base_command(None, base.text.replace("/no/model", "org/name")), [Change.parse("--dtype=bfloat16")])
    assert next(f for f in preflight(host, hub, facts(), None, str(tmp_path)) if f.name == "model").ok


def test_a_disk_without_room_for_logs_is_refused(host, tmp_path, monkeypatch):
    fine = found(host, tmp_path, facts())["disk"]
    assert "free for logs" in fine.text
    monkeypatch.setattr("forensics.replay.preflight._DISK_BYTES", 1 << 60)
    bad = found(host, tmp_path, facts())["disk"]
    assert not bad.ok and not bad.forcible and bad.hint == "free some space"


def test_force_overrides_advice_and_nothing_impossible(tmp_path):
    launch = command(tmp_path, "--tp 2 --dtype float16").replace(" --device cpu", "")
    done = replay(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--yes")
    assert done.returncode == 2 and "GPUs: 2 needed, 1 visible" in done.stderr and starts(tmp_path) == []
    done = replay(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--yes", "--force")
    assert "Verdict: passes" in done.stdout, done.stderr
    gone = launch.replace("/model ", "/nomodel ")
    done = replay(tmp_path, "--launch", gone, "--fix", "--dtype=bfloat16", "--yes", "--force")
    assert done.returncode == 2 and "nomodel is not on this host" in done.stderr
