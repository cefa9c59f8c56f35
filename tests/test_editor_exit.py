"""The language server's end, as the protocol asks for it: `shutdown`, `exit`, status 0, nothing on standard error."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("pygls")


def send(process, **message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    process.stdin.flush()


def answer(process, number):
    while True:
        length = 0
        while line := process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        found = json.loads(process.stdout.read(length))
        if found.get("id") == number:
            return found


def test_the_server_ends_as_the_protocol_asks():
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-m", "forensics", "lsp"], stdin=pipe, stdout=pipe, stderr=pipe)
    send(process, id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    assert answer(process, 1)["result"]["capabilities"]
    send(process, method="initialized", params={})
    send(process, id=2, method="shutdown")
    answer(process, 2)
    send(process, method="exit")
    assert process.wait(60) == 0
    assert b"Traceback" not in process.stderr.read()
