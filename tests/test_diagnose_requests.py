"""Requests that a server refuses while it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import focus, write

from forensics import analyze
from forensics.schema.options import Options

LOG = """[2026-01-10 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=1, port=30000)
[2026-01-10 10:00:20] The server is fired up and ready to roll!
[2026-01-10 10:05:00] INFO:     10.0.0.8:50110 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request
[2026-01-10 10:05:01] INFO:     10.0.0.9:50112 - "POST /{what} HTTP/1.1" {status}
[2026-01-10 10:05:09] INFO:     10.0.0.8:50119 - "POST /v1/chat/completions HTTP/1.1" 200 OK
"""


@pytest.mark.parametrize(
    ("what", "status", "failed"),
    [
        ("load_lora_adapter", "400 Bad Request", True),
        ("update_weights_from_disk", "400 Bad Request", True),
        ("load_lora_adapter", "200 OK", False),
        ("generate", "400 Bad Request", False),
    ],
)
def test_a_refused_management_request_is_a_failure_of_that_request(
    tmp_path: Path, what: str, status: str, failed: bool
) -> None:
    path = write(tmp_path, "1.log", LOG.replace("{what}", what).replace("{status}", status))
    found = focus(analyze([str(path)], Options())).first_failure
    assert (found is not None) is failed
    if found is not None:
        assert (found.where.line, found.stage) == (4, "client")
