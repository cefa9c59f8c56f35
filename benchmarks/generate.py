# ruff: noqa: E501 (the lines are log lines)
"""Writes a log of an 8-rank sglang server in the program's own formats, of any size, with a truth file beside it.

    python benchmarks/generate.py OUT MEGABYTES [SEED]

Mix of lines: decode 58 %, prefill 17 %, HTTP 19 %, NCCL, progress bars, warnings, tracebacks of several ranks line by
line interleaved, floods of device asserts, 8 KB server_args, request dumps with free text, broken UTF-8. The truth
file holds exact counts per kind and sums of fields, so that a scan can be checked line by line.
"""

from __future__ import annotations

import collections
import datetime
import json
import random
import sys
from pathlib import Path

RANKS = 8
LINES_PER_LAUNCH = 400_000
"""Lines served before the server is started again (with another form of the log header)."""
START = datetime.datetime(2026, 3, 5, 8, 0, 0)
STYLES = ("plain", "axes", "milliseconds")
FRAMES = (
    (
        "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py",
        "run_scheduler_process",
        "scheduler.event_loop_overlap()",
    ),
    (
        "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py",
        "event_loop_overlap",
        "result = self.run_batch(batch)",
    ),
    (
        "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py",
        "forward",
        "return self.forward_decode(batch)",
    ),
)
STARTUP = (
    "Init torch distributed begin.",
    "Init torch distributed ends. elapsed=4.{a} s, mem usage=1.{a} GB",
    "sglang is using nccl==2.27.{a}",
    "Load weight begin. avail mem=13{a}.17 GB",
    "Load weight end. elapsed=28.{a} s, type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=4{a}.60 GB, mem usage=88.{a} GB.",
    "KV Cache is allocated. #tokens: {b}, KV size: 3{a}.02 GB",
    "Memory pool end. avail mem=1{a}.30 GB",
    "Capture cuda graph begin. This can take up to several minutes. avail mem=1{a}.11 GB",
    "Capture cuda graph end. Time elapsed: 14.{a} s. mem usage=1.{a} GB. avail mem=1{a}.90 GB.",
    "max_total_num_tokens={b}, chunked_prefill_size=8192, max_running_requests=2048, context_len=131072, available_gpu_mem=11.{a} GB",
)
WARNINGS = (
    "KV cache pool is full. Retract requests. #retracted_reqs: {a}, #new_token_ratio: 0.{b} -> 0.{c}",
    "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: {a}:{a}",
    "The request's input length {b} exceeds the context length {c}",
    "Request {h} was waiting in the queue for {a}.{c} s",
    "Cache flushed successfully!",
)
WORDS = [
    "why",
    "does",
    "the",
    "café",
    "run",
    "out",
    "of",
    "naïve",
    "tokens",
    "when",
    "東京",
    "asks",
    "for",
    "more",
    "than",
    "[2026-01-01]",
    "lines",
    "of",
    "code",
]


class Generator:
    """Writes lines until the size is reached, counting what it wrote."""

    def __init__(self, path: Path, size: int, seed: int) -> None:
        self.file = path.open("wb", buffering=1 << 22)
        self.left = size
        self.random = random.Random(seed)
        self.kinds: collections.Counter[str] = collections.Counter()
        self.sums: collections.Counter[str] = collections.Counter()
        self.per_rank: collections.Counter[str] = collections.Counter()
        self.second = 0
        self.style = STYLES[0]
        self._stamps = ("", -1)

    def emit(self, text: str, kind: str) -> None:
        data = text.encode("utf-8", "surrogateescape") + b"\n"
        self.file.write(data)
        self.left -= len(data)
        self.kinds[kind] += 1

    def stamp(self) -> str:
        if self._stamps[1] != self.second:
            when = START + datetime.timedelta(seconds=self.second)
            self._stamps = (when.strftime("%Y-%m-%d %H:%M:%S"), self.second)
        return self._stamps[0] + (f".{self.random.randrange(1000):03d}" if self.style == "milliseconds" else "")

    def ranked(self, rank: int, message: str, kind: str) -> None:
        axes = f"DP{rank} TP{rank} EP{rank}" if self.style == "axes" else f"TP{rank}"
        self.emit(f"[{self.stamp()} {axes}] {message}", kind)

    def fill(self, template: str) -> str:
        pick = self.random.randrange
        return template.format(
            a=pick(10, 99), b=pick(1000, 999_999), c=pick(1000, 9999), h=f"{self.random.getrandbits(128):032x}"
        )

    def launch(self) -> None:
        options = {
            f"option_{'abcdefgh'[i % 8]}{i}": self.random.choice(["None", "True", "'auto'", 4096, "[1, 2, 4]"])
            for i in range(240)
        }
        self.emit(
            f"[{self.stamp()}] server_args=ServerArgs(model_path='org/model', tp_size={RANKS}, "
            + ", ".join(f"{k}={v}" for k, v in options.items())
            + ")",
            "server-args",
        )
        for template in STARTUP:
            for rank in range(RANKS):
                self.ranked(rank, self.fill(template), "stage-mark")
            if template.startswith("Init torch distributed begin"):
                for _ in range(300):
                    self.nccl()
            if template.startswith("Load weight begin"):
                self.emit(
                    "\r".join(
                        f"Loading safetensors checkpoint shards: {k * 100 // 162:3d}% Completed | {k}/162 [00:{k % 60:02d}<00:31,  4.21it/s]"
                        for k in range(0, 163, 6)
                    ),
                    "progress-line",
                )

    def nccl(self) -> None:
        rank, other = self.random.randrange(RANKS), self.random.randrange(RANKS)
        self.emit(
            f"host0:{5200 + rank}:{5600 + other} [{rank}] NCCL INFO Channel {self.random.randrange(24):02d}/0 : {rank}[{rank}] -> {other}[{other}] via P2P/CUMEM",
            "nccl",
        )

    def decode(self) -> None:
        pick, rank = self.random.randrange, self.random.randrange(RANKS)
        running, tokens, queue = pick(1, 257), pick(100, 900_000), pick(60) if self.random.random() < 0.2 else 0
        usage, speed = f"{self.random.random():.2f}", f"{self.random.random() * 9000:.2f}"
        accept = (
            f"accept len: {1 + self.random.random():.2f}, accept rate: {self.random.random():.2f}, "
            if self.style == "axes"
            else ""
        )
        self.ranked(
            rank,
            f"Decode batch, #running-req: {running}, #token: {tokens}, token usage: {usage}, {accept}cuda graph: {running % 40 != 7}, "
            f"gen throughput (token/s): {speed}, #queue-req: {queue}" + (", " if self.style == "milliseconds" else ""),
            "decode-batch",
        )
        self.per_rank[str(rank)] += 1
        self.sums.update(
            running=running,
            tokens=tokens,
            queue=queue,
            usage100=int(usage.replace(".", "")),
            throughput100=int(speed.replace(".", "")),
        )

    def prefill(self) -> None:
        pick = self.random.randrange
        seqs, tokens, cached = pick(1, 9), pick(1, 16_384), pick(60_000)
        tail = f"#pending-token: {pick(9999)}, cuda graph: False, input throughput (token/s): {self.random.random() * 30_000:.2f}"
        self.ranked(
            pick(RANKS),
            f"Prefill batch, #new-seq: {seqs}, #new-token: {tokens}, #cached-token: {cached}, token usage: {self.random.random():.2f}, "
            f"#running-req: {pick(256)}, #queue-req: {pick(99)}, " + (tail if self.style != "milliseconds" else ""),
            "prefill-batch",
        )
        self.sums.update(new_seqs=seqs, new_tokens=tokens, cached_tokens=cached)

    def access(self) -> None:
        pick = self.random.randrange
        good = self.random.random() < 0.995
        status = "200 OK" if good else self.random.choice(["503 Service Unavailable", "400 Bad Request"])
        request = self.random.choice(["POST /generate", "POST /v1/chat/completions", "GET /health", "GET /metrics"])
        prefix = "" if self.style == "milliseconds" else f"[{self.stamp()}] "
        self.emit(
            f'{prefix}INFO:     10.1.{pick(4)}.{pick(250)}:{pick(30_000, 65_000)} - "{request} HTTP/1.1" {status}',
            "access",
        )
        self.sums.update(bad_requests=0 if good else 1)

    def tracebacks(self) -> None:
        """Tracebacks of two to four ranks, their lines interleaved."""
        lines = {rank: self._traceback(rank) for rank in self.random.sample(range(RANKS), self.random.randrange(2, 5))}
        while lines:
            rank = self.random.choice(list(lines))
            text, kind = lines[rank].pop(0)
            if kind == "traceback-head":
                self.ranked(rank, text, kind)
            else:
                self.emit(text, kind)
            if not lines[rank]:
                del lines[rank]

    def _traceback(self, rank: int) -> list[tuple[str, str]]:
        out = [("Scheduler hit an exception: Traceback (most recent call last):", "traceback-head")]
        for number, (file, function, source) in enumerate(FRAMES):
            out += [
                (f'  File "{file}", line {100 + number * 37}, in {function}', "frame"),
                (f"    {source}", "frame-source"),
            ]
        out.append(
            (
                f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.20 GiB. GPU {rank} has a total capacity of 139.81 GiB",
                "exception",
            )
        )
        return [*out, ("", "blank")]

    def assert_flood(self) -> None:
        for k in range(self.random.randrange(500, 2500)):
            self.emit(
                f"/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [{k // 128},0,0], thread: [{k % 128},0,0] "
                'Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.',
                "cuda-assert",
            )

    def request_dump(self) -> None:
        words = " ".join(self.random.choice(WORDS) for _ in range(24))
        self.ranked(
            self.random.randrange(RANKS),
            f"Receive: obj=GenerateReqInput(rid='{self.random.getrandbits(128):032x}', text='{words}')",
            "request-dump",
        )

    def serve(self) -> None:
        """One line (or block) of serving, by the mix."""
        x = self.random.random()
        if self.random.random() < 0.05:
            self.second += 1
        if x < 0.59:
            self.decode()
        elif x < 0.762:
            self.prefill()
        elif x < 0.954:
            self.access()
        elif x < 0.964:
            self.nccl()
        elif x < 0.970:
            self.emit(
                f"Capturing batches (bs={self.random.randrange(256)} avail_mem=9.20 GB): {self.random.randrange(99):3d}%|███       | 3/32 [00:03<00:10,  3.1it/s]",
                "progress-line",
            )
        elif x < 0.998:
            self.ranked(self.random.randrange(RANKS), self.fill(self.random.choice(WARNINGS)), "message")
        elif x < 0.9988:
            self.request_dump()
        elif x < 0.9994:
            self.emit("broken \udcff\udcfe bytes from a model", "text")
        elif x < 0.99945:
            self.tracebacks()
        elif x < 0.999453:
            self.assert_flood()

    def run(self) -> None:
        count = 0
        while self.left > 0:
            self.style = STYLES[count % 3]
            count += 1
            self.launch()
            for _ in range(LINES_PER_LAUNCH):
                self.serve()
                if self.left <= 0:
                    break
        self.file.close()


def main(path: Path, megabytes: float, seed: int = 5) -> dict[str, object]:
    """Write the log and `<path>.truth.json`; gives the truth."""
    generator = Generator(path, int(megabytes * 1e6), seed)
    generator.run()
    truth = {
        "lines": sum(generator.kinds.values()),
        "kinds": dict(generator.kinds),
        "sums": dict(generator.sums),
        "decode_per_rank": dict(generator.per_rank),
    }
    path.with_name(path.name + ".truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")
    return truth


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 5)
