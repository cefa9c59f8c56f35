"""A server's `--config` file: changed in a copy, or overridden where no copy can be seen; the original stays as it is."""

import pytest
from replay_kit import command, free_port, journal, replay, starts, verdict

from forensics.errors import ReplayError
from forensics.replay.base import base_command
from forensics.replay.config_file import ConfigFile
from forensics.replay.edits import Change
from forensics.replay.plan import config_path, make_plan, read_config

TEXT = """# how we serve
model-path: /m   # here
tp_size: 8
dtype: float16  # was bfloat16
cuda-graph-bs: [1, 2]
lora-paths:
  - a
  - b

disable_cuda_graph: true
json-model-override-args: {"a": 1}
port: 30001
trust-remote-code: false
"""
SERVER = "python -m sglang.launch_server --config c.yaml"


def changed(*fixes: str, text: str = TEXT) -> tuple[list[str], list[str]]:
    """(lines gone, lines new) of the file."""
    old, new = text.splitlines(), ConfigFile("c.yaml", text).changed([Change.parse(f) for f in fixes]).text.splitlines()
    return [x for x in old if x not in new], [x for x in new if x not in old]


@pytest.mark.parametrize(
    ("fix", "gone", "new"),
    [
        ("set --dtype=bfloat16", ["dtype: float16  # was bfloat16"], ["dtype: bfloat16  # was bfloat16"]),
        ("set --tp=4", ["tp_size: 8"], ["tp_size: 4"]),
        ("remove --dtype", ["dtype: float16  # was bfloat16"], []),
        ("remove --disable-cuda-graph", ["disable_cuda_graph: true"], []),
        ("remove --lora-paths", ["lora-paths:", "  - a", "  - b"], []),
        ("set --lora-paths=c d", ["  - a", "  - b"], ["  [c, d]"]),
        ("set --cuda-graph-bs=1 2 4", ["cuda-graph-bs: [1, 2]"], ["cuda-graph-bs: [1, 2, 4]"]),
        ("set --trust-remote-code", ["trust-remote-code: false"], ["trust-remote-code: true"]),
        ('set --json-model-override-args={"b": 2}', ['json-model-override-args: {"a": 1}'],
         ['json-model-override-args: "{\\"b\\": 2}"']),
    ],
)  # fmt: skip
def test_one_setting_changes_and_every_other_byte_stays(fix, gone, new):
    assert changed(fix) == (gone, new)


def test_the_settings_are_read_as_the_server_reads_them():
    base = base_command(None, f"{SERVER} --port 30002")
    file = read_config(base, lambda path: TEXT)
    assert file.settings()[:4] == [
        ("--model-path", "/m"),
        ("--tp-size", "8"),
        ("--dtype", "float16"),
        ("--cuda-graph-bs", "1 2"),
    ]
    assert "--trust-remote-code" not in file.words() and "--disable-cuda-graph" in file.words()
    plan = make_plan(base, [Change.parse("--dtype=bfloat16")], config=file)
    assert plan.fixed.address() == ("127.0.0.1", 30002), "the command line wins"
    alone = make_plan(base_command(None, SERVER), [Change.parse("--dtype=bfloat16")], config=file)
    assert alone.fixed.address() == ("127.0.0.1", 30001)
    assert (alone.after, alone.changed.text) == (SERVER, TEXT.replace("float16 ", "bfloat16 "))


def test_a_flag_on_the_command_line_too_is_changed_there_and_removed_from_both():
    base = base_command(None, f"{SERVER} --dtype half")
    file = ConfigFile("c.yaml", TEXT)
    plan = make_plan(base, [Change.parse("--dtype=bfloat16")], config=file)
    assert plan.after == f"{SERVER} --dtype bfloat16" and plan.changed is None
    plan = make_plan(base, [Change.parse("remove --dtype")], config=file)
    assert plan.after == SERVER and "dtype" not in plan.changed.text


def test_a_file_that_cannot_be_seen_is_overridden_on_the_command_line():
    text = "docker run --network host image python3 -m sglang.launch_server --config /etc/c.yaml"
    base = base_command(None, text)
    assert read_config(base, lambda path: TEXT) is None, "the path is one inside the container"
    assert make_plan(base, [Change.parse("--dtype=bfloat16")]).after == f"{text} --dtype bfloat16"
    assert make_plan(base, [Change.parse("remove --kv-cache-dtype")]).after == f"{text} --kv-cache-dtype auto"
    with pytest.raises(ReplayError, match=r"may stand in /etc/c\.yaml, which cannot be read") as caught:
        make_plan(base, [Change.parse("remove --quantization")])
    assert "by hand" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [1", "c.yaml:1"), ("- a\n- b\n", "not a mapping"), ("{dtype: half, tp: 8}", "stands in braces")],
)
def test_a_file_that_cannot_be_changed_is_refused_with_its_line(text, said):
    with pytest.raises(ReplayError) as caught:
        ConfigFile("c.yaml", text).changed([Change.parse("remove --dtype")])
    assert said in caught.value.message and caught.value.hint


def test_only_the_word_by_itself_names_a_file():
    assert config_path(base_command(None, SERVER).command()) == "c.yaml"
    assert config_path(base_command(None, SERVER.replace(" c.yaml", "=c.yaml")).command()) is None


def test_a_copy_is_changed_and_the_original_is_what_it_was(tmp_path):
    port = free_port()
    config = tmp_path / "c.yaml"
    text = f"# mine\nport: {port}\ndtype: float16   # careful\ndisable-cuda-graph: true\n"
    config.write_text(text)
    launch = command(tmp_path, "--config", "c.yaml", needs="dtype=bfloat16 disable_cuda_graph=False").replace(
        " --port ", " --max-running-requests "
    )
    fixes = ("--fix", "set --dtype=bfloat16", "--fix", "remove --disable-cuda-graph")
    dry = replay(tmp_path, "--launch", launch, *fixes)
    assert "Changed copy of c.yaml (the file itself is not touched):" in dry.stdout
    assert "-dtype: float16   # careful" in dry.stdout and "+dtype: bfloat16   # careful" in dry.stdout
    assert "-disable-cuda-graph: true" in dry.stdout
    assert "--config -c.yaml- +forensics-RUN/fixed.config.yaml+" in dry.stdout
    done = replay(tmp_path, "--launch", launch, *fixes, "--control", "--yes")
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert f"port: {port} is free" in done.stdout
    assert config.read_text() == text
    control, fixed = starts(tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    assert control.endswith("--config c.yaml") and fixed.endswith("/agent/fixed.config.yaml")
    copy = text.replace("float16", "bfloat16").replace("disable-cuda-graph: true\n", "")
    assert (run / "fixed.config.yaml").read_text() == copy
    assert journal(tmp_path)["applied"] == ["set --dtype=bfloat16", "remove --disable-cuda-graph"]
