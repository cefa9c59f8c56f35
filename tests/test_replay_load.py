"""How much load a probe gives: at least the concurrency of the failure, and beyond the requests that had begun."""

from forensics import analyze
from forensics.replay.load import choose_load
from forensics.replay.probe import load_requests
from forensics.replay.verify import focus

T = "[2025-11-03 10:00:0{}] "
PREFILL = (
    T
    + "Prefill batch, #new-seq: {}, #new-token: 18, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0"
)
DECODE = (
    T
    + "Decode batch, #running-req: {}, #token: 54, token usage: 0.00, cuda graph: True, gen throughput (token/s): 18.02, #queue-req: 0"
)


def failing(tmp_path, running: int, begun: int):
    log = tmp_path / "server.log"
    lines = [
        T.format(0) + "server_args=ServerArgs(model_path='/m', tp_size=1)",
        T.format(1) + "The server is fired up and ready to roll!",
    ]
    lines += [PREFILL.format(2, begun), DECODE.format(3, running), DECODE.format(4, 2)]
    lines.append(
        T.format(5)
        + 'Scheduler hit an exception: Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\nRuntimeError: no\n'
    )
    log.write_text("\n".join(lines))
    return [str(log)], focus(analyze([str(log)]))


def test_the_concurrency_at_which_it_failed_and_twice_the_requests_that_had_begun(tmp_path):
    names, launch = failing(tmp_path, 24, 300)
    load = choose_load(names, launch, 0, 0, 64, 600.0)
    assert (load.concurrency, load.count) == (24, 600)


def test_a_crash_at_the_first_request_still_gets_a_load_and_a_long_life_is_bounded(tmp_path):
    names, launch = failing(tmp_path, 1, 1)
    assert choose_load(names, launch, 0, 0, 64, 600.0).count == 32
    names, launch = failing(tmp_path, 512, 90000)
    assert choose_load(names, launch, 0, 0, 64, 600.0).count == 2000


def test_the_user_decides_where_he_says_so():
    load = choose_load([], None, 3, 7, 16, 60.0, 1.0)
    assert (load.concurrency, load.count, load.tokens, load.seconds, load.settle) == (3, 7, 16, 60.0, 1.0)
    bodies = [r["body"] for r in load_requests("m", load)]
    assert len(bodies) == 7 and all(b["max_tokens"] == 16 and b["ignore_eos"] for b in bodies)
    assert len({len(b["prompt"]) for b in bodies}) > 3, "prompts of several lengths"
