"""sglang's own crash dump: a pickle, so it is read only when trusted, and in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.replay.host import Host

# Runs under the server's Python. A crash dump holds {"server_args", "requests": [(request, output, created, finished)],
# "launch_command"} (sglang 0.5.x, tokenizer_manager.dump_requests_before_crash).
_SCRIPT = r"""
import json, pickle, sys
with open(sys.argv[1], "rb") as file:
    data = pickle.load(file)
rows = data.get("requests", data) if isinstance(data, dict) else data
out = []
for row in rows:
    request = row[0] if isinstance(row, (tuple, list)) else row
    text, ids = getattr(request, "text", None), getattr(request, "input_ids", None)
    sampling = getattr(request, "sampling_params", None)
    if isinstance(request, dict):
        text, ids, sampling = request.get("text"), request.get("input_ids"), request.get("sampling_params")
    body = {"sampling_params": sampling if isinstance(sampling, dict) else {}}
    if text is not None:
        body["text"] = text
    elif ids is not None:
        body["input_ids"] = list(ids)
    else:
        continue
    out.append({"path": "/generate", "body": body})
command = data.get("launch_command") if isinstance(data, dict) else None
print("\n@forensics " + json.dumps({"requests": out, "launch_command": command}))
"""


def read_dump(host: Host, path: Path, python: list[str], trusted: bool) -> tuple[list[dict[str, Any]], str | None]:
    """(requests, launch command) of a crash dump. Raises ReplayError unless `trusted`: a pickle can run any code."""
    if not trusted:
        raise ReplayError(
            f"{path} is a pickle, and reading one can run any code",
            hint="add --trust-dump only if this host's own server wrote it; else give --requests-file",
        )
    reply = host.ask("ask", argv=[*python, "-c", _SCRIPT, str(path)], timeout=300)
    for line in reversed(reply["out"].splitlines()):
        if line.startswith("@forensics "):
            data = json.loads(line[len("@forensics ") :])
            requests = [{"method": "POST", **request} for request in data["requests"]]
            return requests, data["launch_command"]
    last = (reply["err"].strip().splitlines() or ["no output"])[-1]
    raise ReplayError(f"{path} cannot be read as a crash dump: {last[:200]}", hint="give --requests-file instead")
