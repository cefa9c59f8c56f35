"""Typed edits of launch commands: what is inserted, and that every other byte stays."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import ReplayError
from forensics.replay.base import base_command
from forensics.replay.edits import Change, change_command
from forensics.replay.plan import Relaunch, make_plan

PLAIN = "python3 -m sglang.launch_server --model-path /models/m --tp 8 --dtype=float16 --trust-remote-code"


def change(text: str, *fixes: str) -> str:
    return change_command(text, [Change.parse(fix) for fix in fixes])


@pytest.mark.parametrize(
    ("text", "fix", "result"),
    [
        (PLAIN, "set --dtype=bfloat16", PLAIN.replace("float16", "bfloat16")),
        (PLAIN, "--tp-size 4", PLAIN.replace("--tp 8", "--tp 4")),
        (PLAIN, "remove --trust-remote-code", PLAIN.removesuffix(" --trust-remote-code")),
        (PLAIN, "remove --dtype", PLAIN.replace(" --dtype=float16", "")),
        (PLAIN, "set --disable-cuda-graph", PLAIN + " --disable-cuda-graph"),
        (PLAIN, "set NCCL_DEBUG=INFO", "env NCCL_DEBUG=INFO " + PLAIN),
        (PLAIN, "unset NCCL_DEBUG", "env -u NCCL_DEBUG " + PLAIN),
        ("A=1 NCCL_DEBUG=WARN " + PLAIN, "NCCL_DEBUG=INFO", "A=1 NCCL_DEBUG=INFO " + PLAIN),
        ("A=1 NCCL_DEBUG=WARN " + PLAIN, "unset NCCL_DEBUG", "A=1 " + PLAIN),
        ("sglang serve --model-path m --dtype half", "--dtype=bfloat16", "sglang serve --model-path m --dtype bfloat16"),
        (PLAIN + " --dtype half", "--dtype=bfloat16", PLAIN + " --dtype bfloat16"),
    ],
)  # fmt: skip
def test_one_change(text, fix, result):
    assert change(text, fix) == result


def test_wrappers_and_line_ends_stay_byte_for_byte():
    text = "srun -N1  nohup numactl  -N 0 \\\n  /opt/v/bin/python -u -m sglang.launch_server \\\n\t--model-path 'a b' \\\n  --tp 8"
    assert change(text, "set NCCL_DEBUG=INFO", "set --dtype=bfloat16") == (
        text.replace("/opt/v/bin/python", "env NCCL_DEBUG=INFO /opt/v/bin/python") + " --dtype bfloat16"
    )


def test_a_container_gets_its_environment_through_the_client():
    text = "docker run --gpus all -e A=1 --rm image:1 python3 -m sglang.launch_server --model-path m"
    assert change(text, "set NCCL_DEBUG=INFO") == text.replace("docker run", "docker run -e NCCL_DEBUG=INFO")
    marked, container = Relaunch(base_command(None, text), text).prepared("", "/runs/x.cid", "MARK=1")
    assert container.client == ("docker",) and container.cidfile == "/runs/x.cid"
    assert marked == text.replace("docker run", "docker run -e MARK=1 --cidfile /runs/x.cid")


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "PYTHONPATH", "HF_TOKEN", "BASH_ENV"])
def test_only_variables_of_the_servers_own_stack_may_be_set(name):
    base = base_command(None, PLAIN)
    with pytest.raises(ReplayError, match="not on the list"):
        make_plan(base, [Change("env", "set", name, "x")])
    assert name in make_plan(base, [Change("env", "set", name, "x")], allowed_env=[name]).after


def test_the_diff_shows_the_inserted_words_and_no_others():
    plan = make_plan(base_command(None, PLAIN), [Change.parse("NCCL_DEBUG=INFO"), Change.parse("--dtype=bfloat16")])
    assert [(sign, text) for sign, text in plan.diff() if sign != "="] == [
        ("+", "env NCCL_DEBUG=INFO "),
        ("-", "--dtype=float16"),
        ("+", "--dtype=bfloat16"),
    ]


def test_a_change_that_changes_nothing_is_refused():
    with pytest.raises(ReplayError, match="leave the command as it is"):
        make_plan(base_command(None, PLAIN), [Change.parse("--dtype=float16")])


def test_a_value_cannot_smuggle_shell_words():
    after = change(PLAIN, "set --dtype=x;rm -rf /", "set NCCL_DEBUG=$(reboot)")
    assert "'x;rm -rf /'" in after and "'$(reboot)'" in after


def test_a_value_with_blanks_is_one_argument_and_a_list_is_several():
    after = change(PLAIN, "set --served-model-name=my chat model", "set --cuda-graph-bs=1 2 4", "set --tp-size=a b")
    words = shlex.split(after)
    assert words[words.index("--served-model-name") + 1] == "my chat model"
    assert words[words.index("--cuda-graph-bs") + 1 :][:3] == ["1", "2", "4"]
    assert words[words.index("--tp") + 1] == "a b"
    assert "--not-a-known-flag 'a b'" in change(PLAIN, "set --not-a-known-flag=a b")


@pytest.mark.parametrize(
    "prefix", ["", "A=1 ", "env A=1 ", "nohup ", "numactl -N 0 ", "CUDA_VISIBLE_DEVICES=0,1 \\\n  "]
)
@pytest.mark.parametrize("python", ["python3", "python", "/opt/v/bin/python -u", "exec python3"])
@pytest.mark.parametrize("name", ["NCCL_DEBUG", "CUDA_VISIBLE_DEVICES"])
def test_a_variable_put_before_the_command_leaves_the_python_as_it_is(prefix, python, name):
    base = base_command(None, f"{prefix}{python} -m sglang.launch_server --model-path m --tp 2")
    plan = make_plan(base, [Change("env", "set", name, "7"), Change.parse("--disable-cuda-graph")])
    touched = "".join(text for sign, text in plan.diff() if sign != "=")
    assert f"{name}=7" in touched and "python" not in touched


@pytest.mark.parametrize("text", ["", "set", "--", "set --a b=", "1=2", "remove", "set NAME", "set --x y --z"])
def test_what_is_no_change_is_refused_or_read_as_one_flag(text):
    try:
        parsed = Change.parse(text)
    except ReplayError as error:
        assert "hint" in error.render()
    else:
        assert parsed.name.startswith("--")


@given(
    st.sampled_from(["--dtype", "--tp-size", "--mem-fraction-static", "--kv-cache-dtype", "--page-size"]),
    st.text(alphabet="abcXYZ019._-/:", min_size=1, max_size=12).filter(lambda s: not s.startswith("-")),
)
@settings(max_examples=60, deadline=None)
def test_the_diff_joins_to_the_command_and_setting_twice_is_setting_once(name, value):
    base = base_command(None, PLAIN)
    change_ = Change("flag", "set", name, value)
    once = change_command(base.text, [change_])
    assert change_command(once, [change_]) == once
    if once != base.text:
        plan = make_plan(base, [change_])
        assert "".join(text for sign, text in plan.diff() if sign != "-") == plan.after
        assert "".join(text for sign, text in plan.diff() if sign != "+") == plan.before
