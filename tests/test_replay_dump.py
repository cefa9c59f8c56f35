"""sglang's own crash dump is a pickle: refused unless trusted, then read in a process of its own."""

import pickle
import sys

import pytest

from forensics.errors import ReplayError
from forensics.replay.dump import read_dump
from forensics.replay.host import Address, Host


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "crash_dump.pkl"
    requests = [
        ({"text": "a prompt", "sampling_params": {"max_new_tokens": 8}}, {}, 1.0, 2.0),
        ({"input_ids": [1, 2]}, {}, 1, 2),
    ]
    data = {"server_args": {}, "requests": requests, "launch_command": "python -m sglang.launch_server --tp 8"}
    path.write_bytes(pickle.dumps(data))
    return path


def test_an_untrusted_dump_is_never_opened(dump):
    with Host(Address.parse("local")) as host, pytest.raises(ReplayError, match="pickle"):
        read_dump(host, dump, [sys.executable], trusted=False)


def test_a_trusted_dump_gives_requests_and_the_launch_command(dump):
    with Host(Address.parse("local")) as host:
        requests, command = read_dump(host, dump, [sys.executable], trusted=True)
    assert command == "python -m sglang.launch_server --tp 8"
    assert [r["body"].get("text") or r["body"]["input_ids"] for r in requests] == ["a prompt", [1, 2]]
    assert all(r["path"] == "/generate" and r["method"] == "POST" for r in requests)


def test_what_is_no_dump_is_an_error_with_a_way_out(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(b"not a pickle")
    with Host(Address.parse("local")) as host, pytest.raises(ReplayError, match="cannot be read"):
        read_dump(host, path, [sys.executable], trusted=True)
