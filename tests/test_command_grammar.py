"""Shell words keep their places; the server, its flags and its environment are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.grammar.command import read_command, read_exports, split_words
from forensics.grammar.server_args import read_server_args
from forensics.timeline.catalog import catalog


def test_words_keep_their_bytes():
    text = "+ MODEL='größe 1' python3 -m sglang.launch_server --model-path \"$MODEL\" 2>&1 | tee x.log"
    words = split_words(text)
    for word in words:
        assert text.encode()[word.byte_start : word.byte_end].decode() == text[word.start : word.end]
    assert words[1].value == "MODEL=größe 1"
    assert [w.value for w in words if w.operator] == ["2>&1", "|"]


@given(st.text(max_size=200))
def test_any_text_splits_or_gives_nothing(text):
    for word in split_words(text):
        assert 0 <= word.start < word.end <= len(text)


@pytest.mark.parametrize(
    ("text", "module", "flags", "env"),
    [
        ("python -m sglang.launch_server --tp=2 --trust-remote-code", "sglang.launch_server",
         [("--tp", ("2",)), ("--trust-remote-code", ())], []),
        ("+ A=1 env B='2 3' /usr/bin/python3.12 -u -m sglang serve --bs -1", "sglang", [("--bs", ("-1",))],
         [("A", "1"), ("B", "2 3")]),
        ("sglang serve --model-path m --cuda-graph-bs 1 2 4 --tp 8 && echo done", "sglang serve",
         [("--model-path", ("m",)), ("--cuda-graph-bs", ("1", "2", "4")), ("--tp", ("8",))], []),
        ("docker run -e X=1 --env=Y=2 img python3 -m sglang.launch_server --tp 1", "sglang.launch_server",
         [("--tp", ("1",))], [("X", "1"), ("Y", "2")]),
        ("cd /x; Z=9 python3 launch_server.py --tp 1", "launch_server.py", [("--tp", ("1",))], [("Z", "9")]),
        ("python3 -m sglang_router.launch_router --worker-urls http://a http://b", "sglang_router.launch_router",
         [("--worker-urls", ("http://a", "http://b"))], []),
        ("python3 -m sglang.launch_server --json-model-override-args '{\"a\": [1]}'", "sglang.launch_server",
         [("--json-model-override-args", ('{"a": [1]}',))], []),
    ],
)  # fmt: skip
def test_commands(text, module, flags, env):
    found = read_command(text, catalog())
    assert found.module == module
    assert [(f.name, f.values) for f in found.flags] == flags
    assert [(e.name, e.value) for e in found.env] == env
    for item in found.flags:
        assert found.words[item.first].value.startswith(item.name)


def test_repeated_flags_the_last_one_counts():
    found = read_command("sglang serve --tp 1 --tp 4", catalog())
    assert found.flag("--tp").value == "4"


@pytest.mark.parametrize(
    "text", ["echo sglang", "pip install sglang", "python3 -m http.server", "", "'", "python3 -c 'import sglang'"]
)
def test_no_server(text):
    assert read_command(text, catalog()) is None


def test_exports():
    assert [(e.name, e.value) for e in read_exports("+ export A=1 B='x y'")] == [("A", "1"), ("B", "x y")]
    assert read_exports("make A=1") == ()


def test_server_args_values_and_places():
    text = "server_args=ServerArgs(a='it\\'s', b=None, c=[1, 2.5], d=-1, e=True, f=Conf(x='y', z=[1]), g={'k': 1}, h=<E.A: 1>)"
    found = read_server_args(text)
    assert {a.name: a.value for a in found.arguments} == {
        "a": "it's", "b": None, "c": (1, 2.5), "d": -1, "e": True, "f": "Conf(x='y', z=[1])", "g": "{'k': 1}", "h": "<E.A: 1>",
    }  # fmt: skip
    assert all(text[a.start : a.end].startswith(a.name + "=") for a in found.arguments)
    assert (found.form, found.truncated) == ("call", False)


@pytest.mark.parametrize("cut", range(13, 90, 7))
def test_a_cut_dump_gives_its_whole_fields(cut):
    text = "server_args={'model_path': '/m/x', 'tp_size': 8, 'lora_paths': [{'a': 1}, 'b'], 'quantization': 'fp8'}"
    full = {a.name: a.value for a in read_server_args(text).arguments}
    found = read_server_args(text[:cut])
    assert found.truncated
    assert {a.name: a.value for a in found.arguments}.items() <= full.items()


def test_no_dump():
    assert read_server_args("server_args is missing") is None
    assert read_server_args("server_args=[1]") is None


def test_hostile_dumps_are_cut_not_followed():
    text = "server_args=ServerArgs(tp_size=2, a=" + "[" * 30000
    found = read_server_args(text)
    assert [(a.name, a.value) for a in found.arguments] == [("tp_size", 2)]
    assert found.truncated
    nested = "server_args=ServerArgs(tp_size=2, a=" + "[" * 30000 + "]" * 30000 + ", b=1)"
    assert [a.name for a in read_server_args(nested).arguments] == ["tp_size"]
