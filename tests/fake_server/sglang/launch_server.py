"""`python -m sglang.launch_server` of the stand-in."""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sglang.srt.server_args import prepare_server_args

NAN = "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:109: _assert_async_cuda_kernel: block: [0,0,0], thread: [0,0,0] Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.25 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.02 GiB is free. Process 4711 has 78.08 GiB memory in use."
LOAD = "RuntimeError: Size does not match at dimension 0 expected index [512] to be no larger than self [384] in dimension 0"
FRAMES = '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3301, in run_scheduler_process\n    result = f(request)\n'
LOCK = threading.Lock()


def say(text: str, rank: str = "") -> None:
    with LOCK:
        print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{rank}] {text}", flush=True)


def healthy(args) -> bool:
    state = {**vars(args), **os.environ}
    for need in os.environ.get("FAKE_NEEDS", "").split():
        name, _, value = need.partition("=")
        if str(state.get(name)) != value:
            return False
    return True


def die(error: str, rank: str) -> None:
    say(f"Scheduler hit an exception: Traceback (most recent call last):\n{FRAMES}{error}\n", rank)
    say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def fail(how: str, rank: str) -> None:
    if how == "nan":
        with LOCK:
            print(NAN, flush=True)
        die("torch.AcceleratorError: CUDA error: device-side assert triggered", rank)
    die({"oom": OOM, "load": LOAD}[how], rank)


def start_up(args, how: str, ranks: list) -> None:
    shown = ", ".join(f"{name}={value!r}" for name, value in vars(args).items())
    say(f"server_args=ServerArgs({shown})")
    for rank in ranks:
        say("Init torch distributed begin.", rank)
        say("Init torch distributed ends. elapsed=0.04 s, mem usage=0.09 GB", rank)
    for rank in ranks:
        say("Load weight begin. avail mem=78.13 GB", rank)
    for shard in range(5):
        with LOCK:
            text = f"{25 * shard:3d}% Completed | {shard}/4 [00:00<00:00,  2.00it/s]"
            print(f"Loading safetensors checkpoint shards: {text}", flush=True)
        if how == "hang":
            time.sleep(3600)
        if how == "load" and shard == 2:
            fail(how, ranks[0])
        time.sleep(float(os.environ.get("FAKE_SHARD_S", "0")) if shard < 4 else 0)
    for rank in ranks:
        say("Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem=62.06 GB, mem usage=16.06 GB.", rank)
    for rank in ranks:
        say("KV Cache is allocated. dtype: torch.bfloat16, #tokens: 65536, K size: 4.00 GB, V size: 4.00 GB", rank)
        say("Memory pool end. avail mem=54.02 GB", rank)
    say(
        "max_total_num_tokens=65536, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=8192, available_gpu_mem=54.02 GB",
        ranks[0],
    )
    say("INFO:     Application startup complete.")
    say(f"INFO:     Uvicorn running on http://{args.host}:{args.port} (Press CTRL+C to quit)")


class Handler(BaseHTTPRequestHandler):
    args, how, ranks = None, "", []

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": self.args.served_model_name or self.args.model_path}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path == "/flush_cache":
            self.reply({})
            return
        sampled = body.get("temperature", 1.0) != 0
        if self.how in ("nan", "oom") and sampled:
            say(
                "Decode batch, #running-req: 1, #token: 54, token usage: 0.00, cuda graph: True, gen throughput (token/s): 18.02, #queue-req: 0",
                self.ranks[0],
            )
            fail(self.how, self.ranks[0])
        say(
            "Prefill batch, #new-seq: 1, #new-token: 18, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0",
            self.ranks[0],
        )
        say(
            "Decode batch, #running-req: 1, #token: 54, token usage: 0.00, cuda graph: True, gen throughput (token/s): 432.10, #queue-req: 0",
            self.ranks[0],
        )
        prompt = str(body.get("prompt") or body.get("text") or body.get("messages") or body.get("input_ids"))
        text = "!" * 64 if self.how == "silent" else f"an answer to {prompt[:40]} with several words"
        choice = {"text": text, "logprobs": {"token_logprobs": [-0.5, -1.25]}}
        self.reply({"choices": [choice]})

    def reply(self, data):
        text = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, form, *values):
        say(f'INFO:     {self.client_address[0]}:{self.client_address[1]} - "{self.requestline}" 200 OK')


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    if os.environ.get("FAKE_STARTS"):
        with open(os.environ["FAKE_STARTS"], "a") as file:
            file.write(" ".join(sys.argv[1:]) + "\n")
    args = prepare_server_args(sys.argv[1:])
    count = args.tp_size
    ranks = [f" TP{n}" for n in range(count)] if count > 1 else [""]
    how = os.environ.get(f"FAKE_FAILS_{args.dtype}") or ("" if healthy(args) else os.environ.get("FAKE_FAILS", "nan"))
    how = "" if how == "no" else how
    start_up(args, how, ranks)
    Handler.args, Handler.how, Handler.ranks = args, how, ranks
    server = Server((args.host, args.port), Handler)
    say("The server is fired up and ready to roll!")
    server.serve_forever()


if __name__ == "__main__":
    main()
