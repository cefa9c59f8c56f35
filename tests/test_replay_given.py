"""What a person gave, out of a server_args dump: no defaults, no choices of the server, no Python, nothing cut."""

import json
import shlex
import subprocess
import sys

import pytest

from forensics import analyze
from forensics.errors import ReplayError
from forensics.grammar.command import read_command
from forensics.replay.base import base_command
from forensics.replay.edits import Change
from forensics.replay.given import given_arguments
from forensics.replay.plan import make_plan
from forensics.replay.verify import focus
from forensics.timeline.catalog import catalog

T = "[2025-11-03 10:00:01] "
BASE = "model_path='/models/a', tokenizer_path='/models/a', served_model_name='/models/a', host='127.0.0.1', port=30100"
GRAPHS = (
    "cuda_graph_config=CudaGraphConfig(decode=PhaseConfig(backend='full', max_bs=16, bs=[1, 2, 4, 8, 12, 16]), "
    "prefill=PhaseConfig(backend='disabled', max_bs=8192, bs=[" + ", ".join(map(str, range(4, 8192, 8))) + "]))"
)


def dumped(folder, fields, form="call"):
    text = f"ServerArgs({fields})"
    if form == "dict":
        text = "{" + fields + "}"
    path = folder / "server.log"
    path.write_text(
        f"{T}server_args={text}\n{T}Init torch distributed begin.\n{T}Load weight begin. avail mem=70.00 GB\n"
    )
    return path


def given(folder, fields, form="call"):
    launch = focus(analyze([str(dumped(folder, fields, form))]))
    found = given_arguments(launch)
    assert found is not None
    return found, base_command(launch)


def test_what_the_server_chose_is_left_out_and_told(tmp_path):
    fields = (
        f"{BASE}, device='cuda', attention_backend='triton', sampling_backend='flashinfer', grammar_backend='xgrammar', "
        "page_size=1, mem_fraction_static=0.903, chunked_prefill_size=32768, load_balance_method='round_robin', "
        f"mm_process_config={{}}, expert_distribution_recorder_buffer_size=1000, moe_runner_backend='auto', "
        f"speculative_moe_runner_backend='auto', encoder_transfer_backend='zmq_to_scheduler', {GRAPHS}"
    )
    found, base = given(tmp_path, fields)
    assert [a.dest for a in found.arguments] == ["model_path", "port", "attention_backend", "chunked_prefill_size"]
    assert [str(a) for a in found.perhaps] == ["--attention-backend triton"]
    told = "\n".join(base.notes)
    for text in ("--sampling-backend flashinfer", "--grammar-backend xgrammar", "--mem-fraction-static 0.903"):
        assert text in told
    assert "--cuda-graph-config, an object that the server builds" in told
    assert base.text.endswith("--port 30100 --attention-backend triton --chunked-prefill-size 32768")


def test_a_share_of_memory_that_a_person_wrote_stays(tmp_path):
    for share in ("0.985", "0.3", "0.0001"):
        assert f"--mem-fraction-static {share}" in given(tmp_path, f"{BASE}, mem_fraction_static={share}")[1].text


def test_objects_and_hidden_values_are_never_written(tmp_path):
    fields = f"{BASE}, forward_hooks=[Hook(name='x', n=1)], chat_template='<redacted>', dtype='float16'"
    found, base = given(tmp_path, fields)
    assert "Hook" not in base.text and "redacted" not in base.text and "--dtype float16" in base.text
    assert dict(found.unwritable).keys() == {"--forward-hooks", "--chat-template"}
    assert any("--chat-template, the log hides its value" in note for note in base.notes)


@pytest.mark.parametrize("value", ["{'image': {'max_pixels': 1048576}, 'fast': True}", '\'{"image": {"n": 2}}\''])
def test_objects_of_settings_are_json(tmp_path, value):
    _, base = given(tmp_path, f"{BASE}, mm_process_config={value}")
    words = shlex.split(base.text)
    assert json.loads(words[words.index("--mm-process-config") + 1])["image"]


def test_long_values_are_whole(tmp_path):
    override = json.dumps({f"key_{n}": n for n in range(100)})
    _, base = given(tmp_path, f"{BASE}, json_model_override_args='{override}'")
    words = shlex.split(base.text)
    assert json.loads(words[words.index("--json-model-override-args") + 1]) == json.loads(override)
    assert len(override) > 1000


def test_a_long_stated_command_is_whole(tmp_path):
    path = tmp_path / "server.log"
    command = f"python3 -m sglang.launch_server --model-path /m/{'a' * 500} --tp-size 4 --mem-fraction-static 0.8"
    path.write_text(f"+ {command}\n{T}Init torch distributed begin.\n{T}Load weight begin. avail mem=70.00 GB\n")
    assert base_command(focus(analyze([str(path)]))).text == command


def test_graph_sizes_follow_from_the_largest_one(tmp_path):
    ladder = [1, 2, 4, 8, 12, 16, 24, 32]
    _, derived = given(tmp_path, f"{BASE}, cuda_graph_max_bs=32, cuda_graph_bs={ladder}")
    assert "max-bs 32" in derived.text.replace("-decode", "") and " 12 16" not in derived.text
    _, own = given(tmp_path, f"{BASE}, cuda_graph_max_bs=32, cuda_graph_bs=[1, 8, 32]")
    assert "1 8 32" in own.text


def test_the_prefill_chunk_is_stated_before_its_division_by_the_groups(tmp_path):
    fields = (
        f"{BASE}, tp_size=8, dp_size=8, enable_dp_attention=True, schedule_conservativeness=0.3, chunked_prefill_size="
    )
    assert "--chunked-prefill-size 32768" in given(tmp_path, f"{fields}4096")[1].text
    _, base = given(tmp_path, f"{fields}1024")
    assert "chunked" not in base.text and "conservativeness" not in base.text


def test_what_is_on_by_default_is_switched_off_by_its_own_flag(tmp_path):
    _, base = given(tmp_path, f"{BASE}, dllm_fdfo=False")
    assert "--no-dllm-fdfo" in base.text


def test_adapters_are_written_as_they_are_given(tmp_path):
    refs = "[LoRARef(lora_id='1f', lora_name='sql', lora_path='/adapters/sql', pinned=False)]"
    _, base = given(tmp_path, f"{BASE}, enable_lora=True, lora_paths={refs}")
    assert base.text.endswith("--lora-paths sql=/adapters/sql")


def test_the_command_reads_back_as_it_was_written(tmp_path):
    _, base = given(
        tmp_path, f"{BASE}, tp_size=2, chat_template='/t/my template.jinja', lora_target_modules=['q', 'v']"
    )
    command = read_command(base.text, catalog())
    assert command is not None and not command.positionals
    assert {f.name: f.value for f in command.flags}["--chat-template"] == "/t/my template.jinja"


def test_a_flag_of_the_router_is_no_flag_of_a_server(tmp_path):
    _, base = given(tmp_path, BASE)
    change = Change.parse("set --router-worker-startup-timeout-secs=1800")
    with pytest.raises(ReplayError, match="flag of the router"):
        make_plan(base, [change])


def test_the_issue_text_states_the_same_and_keeps_the_address(tmp_path):
    fields = f"{BASE.replace('127.0.0.1', '10.1.2.3')}, fp4_gemm_runner_backend='auto', page_size=1, tp_size=2"
    log = dumped(tmp_path, fields)
    run = [sys.executable, "-m", "forensics", "analyze", str(log), "--issue"]
    text = subprocess.run(run, capture_output=True, text=True).stdout
    assert "python3 -m sglang.launch_server --model-path /models/a --tp-size 2\n" in text
    assert "Left out, for privacy: --host, --port." in text and "10.1.2.3" not in text


@pytest.mark.parametrize(
    ("fields", "flag"),
    [
        ("served_model_name='--trust-remote-code'", "--served-model-name"),
        ("lora_paths=['--trust-remote-code', 'a=b']", "--lora-paths"),
        ("log_level='-h'", "--log-level"),
        ("json_model_override_args='" + '{"a":' * 3000 + "'", "--json-model-override-args"),
    ],
)
def test_a_value_that_is_an_option_or_nests_without_end_is_left_out(tmp_path, fields, flag):
    found, base = given(tmp_path, f"model_path='/models/a', {fields}")
    assert base.text == "python3 -m sglang.launch_server --model-path /models/a"
    assert any(flag in note for note in found.notes())


def test_a_negative_number_is_a_value(tmp_path):
    _, base = given(tmp_path, f"{BASE}, stream_interval=-2")
    assert "--stream-interval -2" in base.text


def test_a_model_whose_name_is_an_option_gives_no_command(tmp_path):
    with pytest.raises(ReplayError, match="take for an option"):
        given(tmp_path, "model_path='--trust-remote-code', tp_size=2")
