"""Generated secrets of every kind in every place where a log can hold one, and texts that must stay as they are."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"


@dataclass(frozen=True, slots=True)
class Case:
    """`text` holds `secret` (one line, or several for keys); `kind` and `place` say what and where."""

    kind: str
    place: str
    text: str
    secret: str


def _run(rng: random.Random, letters: str, length: int) -> str:
    """A run with a digit, a small and a capital letter, as generators make them."""
    body = "".join(rng.choice(letters) for _ in range(length - 3))
    return rng.choice(string.ascii_lowercase) + body + rng.choice(string.digits) + rng.choice(string.ascii_uppercase)


# Secrets that are known by their form, wherever they stand.
FORMS: dict[str, Callable[[random.Random], str]] = {
    "hugging face": lambda r: "hf_" + _run(r, string.ascii_letters, 34),
    "openai": lambda r: "sk-" + _run(r, ALNUM, 48),
    "openai project": lambda r: "sk-proj-" + _run(r, URLSAFE.replace("_", ""), 60),
    "anthropic": lambda r: "sk-ant-api03-" + _run(r, URLSAFE, 90),
    "github": lambda r: "ghp_" + _run(r, ALNUM, 36),
    "github fine": lambda r: "github_pat_" + _run(r, ALNUM + "_", 70),
    "gitlab": lambda r: "glpat-" + _run(r, URLSAFE, 20),
    "aws id": lambda r: "AKIA" + "".join(r.choice(string.ascii_uppercase + string.digits) for _ in range(16)),
    "google": lambda r: "AIza" + _run(r, URLSAFE, 35),
    "google oauth": lambda r: "ya29." + _run(r, URLSAFE, 60),
    "slack": lambda r: f"xoxb-{r.randrange(10**11, 10**12)}-" + _run(r, ALNUM, 24),
    "nvidia": lambda r: "nvapi-" + _run(r, URLSAFE, 64),
    "jwt": lambda r: ".".join(
        [base64.urlsafe_b64encode(b'{"alg":"HS256"}').decode().rstrip("="), "eyJ" + _run(r, ALNUM, 40), _run(r, URLSAFE, 43)]
    ),
    "npm": lambda r: "npm_" + _run(r, ALNUM, 36),
    "e-mail": lambda r: f"{_run(r, string.ascii_lowercase, 8).lower()}.{_run(r, ALNUM, 6)}@{_run(r, ALNUM, 7).lower()}.example.org",
}  # fmt: skip

# Secrets without a form of their own, known by the name before them.
PLAIN: dict[str, Callable[[random.Random], str]] = {
    "random": lambda r: _run(r, ALNUM, r.choice((8, 12, 20, 40))),
    "punctuated": lambda r: _run(r, ALNUM + "!#%*+-./:?@^_~", 16),
    "base64": lambda r: base64.b64encode(r.randbytes(30)).decode(),
    "words": lambda r: "-".join(r.choice(("correct", "horse", "battery", "staple", "tiger")) for _ in range(4)),
    "digits": lambda r: str(r.randrange(10**11, 10**12)),
    "hex": lambda r: r.randbytes(20).hex(),
}

NAMES = ("api_key", "admin_api_key", "hf_token", "password", "aws_secret_access_key", "client_secret", "access_token", "private_key", "ssl_keyfile_password", "openai_api_key", "auth_token", "secret_key")  # fmt: skip
VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "POSTGRES_PASSWORD", "NGC_API_KEY", "JWT_SECRET", "GITHUB_PAT")  # fmt: skip
FLAGS = ("--api-key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password", "--client-secret")

# Places for secrets with a form.
ANYWHERE: dict[str, str] = {
    "prose": "Cannot log in with {s}, giving up",
    "exception": "requests.exceptions.HTTPError: 401 Client Error for token {s}",
    "list": "['x', '{s}', 1]",
    "path": "downloading into /cache/{s} failed",
    "source": '    client = Client("{s}")',
    "end": "value={s}",
    "quoted json": '{{"message": "with {s}", "n": 1}}',
}

# Places that a name marks: {n} is the name, {s} the secret.
NAMED: dict[str, str] = {
    "server_args call": "server_args=ServerArgs(model_path='/m', {n}='{s}', tp_size=8)",
    "server_args dict": "server_args={{'model_path': '/m', '{n}': '{s}', 'tp_size': 8}}",
    "namespace": "Namespace({n}='{s}', port=30000)",
    "json": '{{"{n}": "{s}", "port": 30000}}',
    "json packed": '{{"a":1,"{n}":"{s}"}}',
    "json in json": '{{"log":"args {{\\"{n}\\": \\"{s}\\"}}\\n","stream":"stderr"}}',
    "yaml": "{n}: {s}",
    "yaml indented": '      {n}: "{s}"',
    "traceback source": "    client = OpenAI({n}='{s}', timeout=3)",
    "assignment": '{n} = "{s}"',
    "kwargs": "TypeError: connect() got kwargs {{'{n}': '{s}'}}",
    "cut off": "server_args=ServerArgs({n}='{s}",
    "double quotes": 'ServerArgs({n}="{s}")',
    "header tuple": "headers=[(b'{n}', b'{s}')]",
    "environ": "os.environ['{n}'] = '{s}'",
    "hash rocket": "{{:{n} => '{s}'}}",
}
COMMANDS: dict[str, str] = {
    "flag": "+ python3 -m sglang.launch_server --model-path /m {f} '{s}' --tp 8",
    "flag equals": "python -m sglang.launch_server {f}='{s}' --tp 8",
    "flag list": "subprocess: ['python', '-m', 'sglang.launch_server', '{f}', '{s}', '--tp', '8']",
    "flag json": '["sglang", "serve", "{f}", "{s}"]',
}
ENVIRONMENTS: dict[str, str] = {
    "prefix": "{v}='{s}' python -m sglang.launch_server --tp 8",
    "export": "export {v}='{s}'",
    "container": "docker run -e {v}='{s}' image python -m sglang.launch_server",
    "trace": "+ {v}={q}",
    "dockerfile": "ENV {v} {q}",
    "compose": "      {v}: '{s}'",
    "environ repr": "environ({{'PATH': '/bin', '{v}': '{s}'}})",
}
HEADERS: dict[str, str] = {
    "bearer": "Authorization: Bearer {u}",
    "basic": "Proxy-Authorization: Basic {b}",
    "curl": "curl -H 'Authorization: Bearer {u}' http://localhost:30000/generate",
    "dict": "{{'authorization': 'Bearer {u}', 'accept': '*/*'}}",
    "asgi": "(b'authorization', b'Bearer {u}'), (b'host', b'x')",
    "x-api-key": "x-api-key: {u}",
    "cookie": "Set-Cookie: session={u}; Path=/",
    "json header": '{{"headers": {{"Authorization": "Bearer {u}"}}}}',
    "bare": "sent Bearer {u} to the router",
}
URLS: dict[str, str] = {
    "password": "https://bob:{u}@registry.example/v2/",
    "password only": "redis://:{u}@10.0.0.5:6379/0",
    "user is token": "git clone https://{u}@git.example/x.git",
    "query": "GET /v1/models?api_key={u}&n=1",
    "query token": "https://bucket.example/model?X-Amz-Signature={u}&X-Amz-Date=1",
    "sas": "https://acct.example/c/blob?sv=2024&sig={u}",
    "dsn": "postgresql://svc:{u}@db:5432/x failed",
}


def cases(seed: int, rounds: int = 1) -> Iterator[Case]:
    """Every kind in every place that fits it, `rounds` times with other random values."""
    rng = random.Random(seed)
    for _ in range(rounds):
        for kind, make in FORMS.items():
            for place, text in ANYWHERE.items():
                secret = make(rng)
                yield Case(kind, place, text.format(s=secret), secret)
        for kind, make in {**PLAIN, **FORMS}.items():
            yield from _named(rng, kind, make)
        yield from _keys(rng)


def _named(rng: random.Random, kind: str, make: Callable[[random.Random], str]) -> Iterator[Case]:
    for place, text in NAMED.items():
        secret = make(rng)
        yield Case(kind, place, text.format(n=rng.choice(NAMES), s=secret), secret)
    for place, text in COMMANDS.items():
        secret = make(rng)
        yield Case(kind, place, text.format(f=rng.choice(FLAGS), s=secret), secret)
    for place, text in ENVIRONMENTS.items():
        secret = make(rng)
        yield Case(kind, place, text.format(v=rng.choice(VARIABLES), s=secret, q=secret), secret)
    for where in (HEADERS, URLS):
        for place, text in where.items():
            plain = _run(rng, URLSAFE, rng.choice((20, 40)))
            coded = base64.b64encode(f"user:{plain}".encode()).decode()
            yield Case(kind, place, text.format(u=plain, b=coded), coded if "{b}" in text else plain)


def _keys(rng: random.Random) -> Iterator[Case]:
    """Private keys: in one line with escapes, and line by line."""
    for name in ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"):
        body = base64.b64encode(rng.randbytes(600)).decode()
        rows = [body[i : i + 64] for i in range(0, len(body), 64)]
        head, tail = f"-----BEGIN {name}-----", f"-----END {name}-----"
        yield Case(
            "private key", "escaped", f'{{"private_key": "{head}\\n' + "\\n".join(rows) + f'\\n{tail}\\n"}}', rows[0]
        )
        yield Case("private key", "lines", "\n".join([head, *rows, tail]), rows[-1])


PROMPTS: dict[str, str] = {
    "receive": "Receive: obj=GenerateReqInput(rid='1', text='{p}', input_ids=None, sampling_params={{}})",
    "finish": "Finish: obj=GenerateReqInput(rid='1', text=None), out={{'text': '{p}', 'meta_info': {{}}}}",
    "finish json": '{{"event": "request.finished", "rid": "1", "obj": {{"text": "{p}"}}, "out": {{"text": "{p}"}}}}',
    "chat": "Receive: obj=ChatCompletionRequest(messages=[{{'role': 'user', 'content': '{p}'}}], model='m')",
    "batch": "reqs=[Req(rid=ab12, input_ids=[1, 2], text='{p}')]",
    "prompt field": "ValueError: bad request prompt='{p}'",
    "messages": 'body: {{"model": "m", "messages": [{{"role": "user", "content": "{p}"}}]}}',
    "content": "failed on {{'role': 'user', 'content': '{p}'}}",
    "pydantic": "  Value error [type=value_error, input_value='{p}', input_type=str]",
    "cut": "Receive: obj=GenerateReqInput(rid='1', text='{p}",
    "tokenized": "TokenizedGenerateReqInput(rid='1', input_text='{p}', input_ids=[1, 2])",
}
"""Where sglang and its web server print what users wrote."""

KEEP: tuple[str, ...] = (
    "max_total_num_tokens=65536, chunked_prefill_size=8192, max_prefill_tokens=16384, context_len=131072",
    "Decode batch. #running-req: 11, #token: 28400, token usage: 0.20, accept len: 2.45, gen throughput (token/s): 790.00",
    "Prefill batch, #new-seq: 1, #new-token: 11, #cached-token: 0, token usage: 0.00, #queue-req: 0",
    "server_args=ServerArgs(model_path='/models/x', tokenizer_path='/models/x', tokenizer_mode='auto', skip_tokenizer_init=False, api_key=None, admin_api_key=None, ssl_keyfile=None, ssl_keyfile_password=None, tp_size=8)",
    "{'tokenizer_path': '/m', 'api_key': None, 'tokenizer_worker_num': 1, 'max_total_tokens': None, 'hf_token': ''}",
    "python -m sglang.launch_server --model-path zai-org/GLM-4.6 --tokenizer-path /m --max-total-tokens 65536 --speculative-num-draft-tokens 4 --tp 8",
    "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=128 NCCL_DEBUG=INFO python3 -m sglang.launch_server --enable-metrics",
    "docker run -e HF_TOKEN=$HF_TOKEN -e API_KEY=${API_KEY} lmsysorg/sglang:v0.5.8 python -m sglang.launch_server",
    '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/tokenizer_manager.py", line 120, in _tokenize_one_request',
    "sglang is using commit 4f1d3e0c9a7b5d2e8f6a1b3c5d7e9f0a2b4c6d8e (v0.5.8.post1-12-g4f1d3e0)",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "git+https://github.com/sgl-project/sglang.git@v0.5.8.post1#subdirectory=python",
    "torch==2.9.1+cu129 transformers==4.57.1 flashinfer_python==0.5.3 nvidia-nccl-cu12==2.27.5",
    "https://github.com/sgl-project/sglang/issues/19948?plain=1#L20",
    "Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
    "tcp://10.0.0.5:20000 http://[fe80::1]:30000/v1 unix:/tmp/x.sock",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.11 GiB",
    "ValueError: token_to_kv_pool_allocator memory leak detected! available_size=2048, protected_size=0, self.size=4096",
    "KeyError: 'model.layers.0.self_attn.k_proj.k_scale'",
    "bos_token='<s>', eos_token='</s>', pad_token=None, think_end_token: </think>",
    "usage: launch_server.py [--api-key API_KEY] [--admin-api-key ADMIN_API_KEY] [--ssl-keyfile-password SSL_KEYFILE_PASSWORD]",
    "libtorch_cuda.so: undefined symbol: cudaMalloc@libcudart.so.12, version libcudart.so.12",
    "frame #3: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long> >) + 0x2b1 (0x7f12 in /opt/torch/lib/libtorch_cuda.so)",
    "[rank3]:[E1130 12:00:00.123456789 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=8192, Timeout(ms)=600000)",
    "basic attention backend, bearer of bad news, authorization module loaded, secrets of tuning",
    "password authentication is off; the key is the prefix; a token is a word",
    "task-queue-length-12 disk-usage risk-free-mode-2024 mask-generation-kernel",
    "Load weight end. elapsed=28.1 s, type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=44.60 GB, mem usage=88.1 GB.",
    "cuda graph key: bs=16, cache_key=('fwd', 16), sort key=lambda x: x.rank",
    "GPU 0: NVIDIA H200 (UUID: GPU-3f2a8c1e-7b6d-4e5f-9a0b-1c2d3e4f5a6b)",
    "@torch.no_grad() def forward(self, x): raise ValueError(f'{self.layer_id=}')",
    "root@gpu-node-1:/workspace# python -m sglang.launch_server",
    "PWD=/workspace/run SHELL=/bin/bash LD_LIBRARY_PATH=/usr/local/cuda/lib64",
    "hf_quant_config.json hf_transformers_utils.py hf_config_overrides",
    "Prompt logprobs: disabled, prompt throughput: 12.0 tokens/s, system prompt cache hit rate 0.9",
    "messages.json loaded, content-type: application/json, content encoding gzip",
    "--json-model-override-args '{\"num_nextn_predict_layers\": 0}' --chat-template /m/chat.jinja",
)
"""Texts that a diagnosis needs, word for word."""
