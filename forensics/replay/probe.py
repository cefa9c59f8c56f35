"""Requests that show whether a server really works: sanity first, then the load at which it had failed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.frozen import frozen

PROMPTS = (
    "List the first ten prime numbers and say why each of them is prime.",
    "Write a short letter to a friend about a walk through a forest in autumn.",
    "Explain to a new colleague what a KV cache is and why its size matters.",
    "Count from one to thirty in words, separated by commas.",
)
"""Fixed texts, so that two probes of one server can be compared."""


@frozen
class Load:
    """`concurrency` requests in flight, `count` in all, `tokens` new tokens each; `seconds` bounds the whole. For
    `settle` seconds the server must stay alive afterwards: a broken kernel may be reported late."""

    concurrency: int = 8
    count: int = 64
    tokens: int = 64
    seconds: float = 600.0
    settle: float = 5.0


@frozen
class Check:
    """One statement about the probe: held or not, with what was seen."""

    name: str
    held: bool
    seen: str


def sanity_requests(model: str, tokens: int = 48) -> list[dict[str, Any]]:
    """Each prompt greedily with log probabilities, the same again, then once sampled.

    The prefix cache is flushed before the second round (`/flush_cache`, sglang's own): a cached prefix takes another
    kernel path, and its rounding alone may change a greedy answer.
    """
    greedy = [_completion(model, p, tokens, temperature=0, logprobs=1) for p in PROMPTS]
    flush = {"method": "POST", "path": "/flush_cache", "timeout": 30.0}
    sampled = [_completion(model, p, tokens, temperature=1.0) for p in PROMPTS]
    return [*greedy, flush, *greedy, *sampled]


def load_requests(model: str, load: Load, recorded: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """`load.count` requests: recorded ones in turn where there are any, else sampled ones of growing length."""
    if recorded:
        return [dict(recorded[n % len(recorded)], timeout=load.seconds) for n in range(max(load.count, len(recorded)))]
    made = []
    for n in range(load.count):
        text = " ".join(PROMPTS[(n + k) % len(PROMPTS)] for k in range(1 + n % 5))
        made.append(_completion(model, text, load.tokens, temperature=1.0, timeout=load.seconds))
    return made


def _completion(model: str, prompt: str, tokens: int, timeout: float = 120.0, **sampling: Any) -> dict[str, Any]:
    # ignore_eos is sglang's own extension of the API: a probe must decode as long as it was asked to
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, **sampling}
    return {"method": "POST", "path": "/v1/completions", "body": body, "timeout": timeout}


def read_recorded(path: Path, limit: int = 10_000) -> list[dict[str, Any]]:
    """Requests of a JSONL file: `{"path": "/v1/…", "body": {…}}`, or a bare body of a (chat) completion.

    Raises ReplayError with the line number where one is not such a request.
    """
    requests: list[dict[str, Any]] = []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}", hint="name a JSONL file of requests") from None
    for number, line in enumerate(lines[:limit], 1):
        if line.strip():
            requests.append(_recorded(line, f"{path}:{number}"))
    if not requests:
        raise ReplayError(
            f"{path} holds no request", hint='one JSON object a line, e.g. {"prompt": "…", "max_tokens": 32}'
        )
    return requests


def _recorded(line: str, place: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ReplayError(f"{place}: not JSON: {error}", hint="one JSON object a line") from None
    if not isinstance(data, dict):
        raise ReplayError(f"{place}: not a JSON object", hint="one JSON object a line")
    body = data.get("body", data)
    path = data.get("path") or _path_of(body)
    if not isinstance(body, dict) or not isinstance(path, str) or not path.startswith("/"):
        raise ReplayError(f"{place}: not a request", hint='give {"path": "/v1/completions", "body": {…}}')
    return {"method": "POST", "path": path, "body": body}


def _path_of(body: object) -> str:
    keys = body.keys() if isinstance(body, dict) else ()
    if "messages" in keys:
        return "/v1/chat/completions"
    return "/v1/completions" if "prompt" in keys else "/generate"


def judge_sanity(results: Sequence[dict[str, Any] | None]) -> list[Check]:
    """Checks over the answers to `sanity_requests`, in its order."""
    count = len(PROMPTS)
    results = [*results[:count], *results[count + 1 :]]  # how the flush was answered does not matter
    answered = [_answer(r) for r in results]
    first, second, sampled = answered[:count], answered[count : 2 * count], answered[2 * count :]
    failed = [r for r in results if r is None or r["status"] != 200]
    texts = [a["text"] for a in answered if a]
    stuck = [t for t in texts if _one_token(t)]
    empty = [t for t in texts if not t.strip("\0 ")]
    numbers = [x for a in (*first, *second) if a for x in a["logprobs"]]
    pairs = [(a["text"], b["text"]) for a, b in zip(first, second, strict=True) if a and b]
    unstable = sum(a != b for a, b in pairs)
    return [
        Check("every request is answered", not failed, _failed_text(failed, len(results))),
        Check("no answer is empty", not empty, f"{len(empty)} of {len(texts)} are empty"),
        Check("no answer is one repeated token", not stuck, f"{len(stuck)} of {len(texts)} repeat one token"),
        Check("log probabilities are finite", all(map(math.isfinite, numbers)), f"{len(numbers)} values seen"),
        # one near-tie may fall either way on a GPU; broken numbers change most answers
        Check("greedy answers are stable", 2 * unstable <= len(pairs), f"{unstable} of {len(pairs)} pairs differ"),
        Check("sampling works", any(sampled), f"{sum(map(bool, sampled))} of {len(sampled)} sampled answers came"),
    ]


def judge_load(results: Sequence[dict[str, Any] | None]) -> list[Check]:
    """Whether the load went through."""
    failed = [r for r in results if r is None or r["status"] != 200]
    return [Check("the load is answered", not failed, _failed_text(failed, len(results)))]


def _failed_text(failed: Sequence[dict[str, Any] | None], count: int) -> str:
    if not failed:
        return f"{count} of {count} answered with 200"
    first = next((r for r in failed if r), None)
    why = f"; first: {first['status']} {first['text'][:160]}" if first else "; they were never answered"
    return f"{len(failed)} of {count} failed{why}"


def _answer(result: dict[str, Any] | None) -> dict[str, Any] | None:
    if not result or result["status"] != 200:
        return None
    try:
        choice = json.loads(result["text"])["choices"][0]
    except (ValueError, LookupError, TypeError):
        return None
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs") or []
    return {
        "text": str(choice.get("text") or ""),
        "logprobs": [float("nan") if x is None else float(x) for x in logprobs],
    }


def _one_token(text: str) -> bool:
    """A text of 16 characters and more that is one unit of at most 8 characters over and over."""
    if len(text) < 16:
        return False
    return any(text == (text[:size] * (len(text) // size + 1))[: len(text)] for size in range(1, 9))
