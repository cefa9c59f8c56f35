"""Where the base command comes from, said in words: the user, the log's command, its server_args, a crash dump."""

from pathlib import Path

import pytest

from forensics import analyze
from forensics.errors import ReplayError
from forensics.replay.base import base_command
from forensics.replay.verify import focus
from forensics.schema.report import LaunchInfo

T = "[2025-11-03 10:00:01] "
ARGS = (
    "server_args=ServerArgs(model_path='/models/a b', tokenizer_path='/models/a b', host='0.0.0.0', port=30100, tp_size=4, "
    "dtype='float16', kv_cache_dtype='auto', mem_fraction_static=0.8, trust_remote_code=True, random_seed=17, "
    "served_model_name='chat', cuda_graph_bs=[1, 2, 4], disable_cuda_graph=False, nnodes=1, dist_init_addr=None)"
)


def launch(folder: Path, *lines: str) -> LaunchInfo:
    path = folder / "server.log"
    path.write_text(
        "\n".join([*lines, T + "Init torch distributed begin.", T + "Load weight begin. avail mem=70.00 GB", ""])
    )
    found = focus(analyze([str(path)]))
    assert found is not None
    return found


def test_the_users_command_comes_first_then_the_logs(tmp_path):
    seen = launch(tmp_path, "+ NCCL_DEBUG=INFO python3 -m sglang.launch_server --model-path /m --tp 4", T + ARGS)
    own = base_command(seen, "python -m sglang.launch_server --model-path /own")
    assert own.text.endswith("/own") and own.origin == "the command line (--launch)"
    traced = base_command(seen, env=True)
    assert traced.text == "env NCCL_DEBUG=INFO python3 -m sglang.launch_server --model-path /m --tp 4"
    assert traced.origin.startswith("the launch command in the log (") and traced.origin.endswith("server.log:1)")
    assert base_command(seen, python="/opt/v/bin/python").text.startswith(
        "/opt/v/bin/python -m sglang.launch_server --model"
    )
    with pytest.raises(ReplayError, match="both given"):
        base_command(seen, "x", Path("y"))


def test_the_serve_form_in_a_log_is_a_command_too(tmp_path):
    assert (
        base_command(launch(tmp_path, "$ sglang serve --model-path /m --tp 4", T + ARGS)).text
        == "sglang serve --model-path /m --tp 4"
    )


def test_server_args_become_the_flags_that_differ_from_that_versions_defaults(tmp_path):
    base = base_command(launch(tmp_path, T + ARGS), python="/opt/venv/bin/python")
    assert base.origin.startswith("server_args in the log (") and "against the defaults of sglang" in base.origin
    words = base.text
    assert words.startswith("/opt/venv/bin/python -m sglang.launch_server --model-path '/models/a b' --tp-size 4")
    for stated in ("--dtype float16", "--host 0.0.0.0", "--port 30100", "--mem-fraction-static 0.8", "--trust-remote-code",
                   "--served-model-name chat", "--cuda-graph-bs 1 2 4"):  # fmt: skip
        assert stated in words
    for unstated in (
        "--kv-cache-dtype",
        "--disable-cuda-graph",
        "--random-seed",
        "--tokenizer-path",
        "--nnodes",
        "--dist-init-addr",
    ):
        assert unstated not in words
    assert not any("as if they had been given" in note for note in base.notes)


def test_the_first_gpu_is_kept_and_what_is_not_taken_over_is_said(tmp_path):
    base = base_command(
        launch(tmp_path, T + ARGS.replace("nnodes=1", "nnodes=1, base_gpu_id=6, log_level_http='debug'"))
    )
    assert "--base-gpu-id 6" in base.text and "--log-level-http" not in base.text
    assert [n for n in base.notes if "take over" in n] == [
        "fields that the relaunch does not take over: log_level_http"
    ]
    default = base_command(launch(tmp_path, T + ARGS.replace("nnodes=1", "nnodes=1, base_gpu_id=0")))
    assert "--base-gpu-id" not in default.text and not any("take over" in n for n in default.notes)


def test_several_nodes_keep_the_address_where_they_meet(tmp_path):
    args = ARGS.replace("nnodes=1, dist_init_addr=None", "nnodes=2, node_rank=0, dist_init_addr='10.0.0.1:5000'")
    text = base_command(launch(tmp_path, T + args)).text
    assert "--nnodes 2" in text and "--dist-init-addr 10.0.0.1:5000" in text and "--node-rank" not in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("+ python3 -m sglang.launch_server --model-path /m --port $PORT", "holds shell syntax"),
        ("+ python3 -m sglang.launch_server --model-path `id`", "holds shell syntax"),
    ],
)
def test_nothing_of_a_log_is_given_to_a_shell(tmp_path, line, said):
    with pytest.raises(ReplayError, match=said) as caught:
        base_command(launch(tmp_path, line, T + ARGS))
    assert "--launch" in caught.value.hint


def test_a_log_may_only_set_variables_of_the_servers_own_stack(tmp_path):
    seen = launch(
        tmp_path, "+ LD_PRELOAD=/x.so SGLANG_LOG_GC=1 python3 -m sglang.launch_server --model-path /m", T + ARGS
    )
    base = base_command(seen, env=True)
    assert "SGLANG_LOG_GC=1" in base.text and "LD_PRELOAD" not in base.text
    assert "variables that a log may not set are left out: LD_PRELOAD" in base.notes


@pytest.mark.parametrize(
    ("dumped", "text"),
    [
        ("/opt/v/lib/python3.12/site-packages/sglang/launch_server.py --model-path /m --tp 8",
         "python9 -m sglang.launch_server --model-path /m --tp 8"),
        ("/opt/v/bin/sglang serve --model-path /m", "/opt/v/bin/sglang serve --model-path /m"),
        ("/usr/lib/python3/dist-packages/sglang/launch_server.py --tp 8", "python9 -m sglang.launch_server --tp 8"),
        ("--model-path /m --tp 8", "python9 -m sglang.launch_server --model-path /m --tp 8"),
    ],
)  # fmt: skip
def test_a_crash_dumps_launch_command(dumped, text):
    base = base_command(None, python="python9", dumped=dumped)
    assert (base.text, base.origin) == (text, "the crash dump's launch_command")
    assert not base.shell and "blanks inside arguments" in base.notes[0]


def test_the_python_beside_a_crash_dumps_module_is_used_where_none_is_named():
    text = base_command(None, dumped="/opt/v/lib/python3.12/site-packages/sglang/launch_server.py --tp 8").text
    assert text == "/opt/v/bin/python3 -m sglang.launch_server --tp 8"


def test_a_crash_dumps_command_is_no_shell_string():
    with pytest.raises(ReplayError, match="holds shell syntax"):
        base_command(None, dumped="x/launch_server.py --model-path /m; reboot")


def test_without_a_command_the_user_is_asked_for_one(tmp_path):
    with pytest.raises(ReplayError) as caught:
        base_command(None)
    assert "--launch" in caught.value.hint
    (tmp_path / "bad.sh").write_bytes(b"\xff\xfe")
    for file in (tmp_path / "none.sh", tmp_path / "bad.sh"):
        with pytest.raises(ReplayError, match="cannot read"):
            base_command(None, file=file)
