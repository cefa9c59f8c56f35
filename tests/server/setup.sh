#!/usr/bin/env bash
# Real sglang 0.5.23 server on CPU, no GPU, no compiled sgl-kernel. Needs Python 3.11 and pip (PyPI).
# Usage: setup.sh [DIR]      (default: the folder of this script)
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
DIR=${1:-$HERE}
mkdir -p "$DIR"; cd "$DIR"
python3.11 -m venv venv
PIP="./venv/bin/pip install -q --disable-pip-version-check"
echo "torch==2.13.0" > constraints.txt
$PIP torch==2.13.0                                    # the CPU build
$PIP --no-deps sglang==0.5.23 torchvision==0.28.0 triton==3.9.0
$PIP -c constraints.txt transformers==5.19.0 tokenizers==0.23.2 aiohttp fastapi 'uvicorn>=0.51' uvloop orjson \
  'pyzmq>=25.1.2' psutil numpy requests tqdm pydantic python-multipart msgspec pillow pybase64 partial_json_parser \
  prometheus-client setproctitle packaging interegular einops xxhash zstandard regex distro easydict \
  sentencepiece==0.2.1 tiktoken IPython openai==2.8.0 'anthropic>=0.20.0' openai-harmony==0.0.4 watchfiles \
  'python-dateutil<3' nvidia-ml-py py-spy 'llguidance<2.0.0,>=1.7.6' blobfile==3.0.0 gguf scipy \
  dill apache-tvm-ffi==0.1.11 compressed-tensors==0.18.0 jsonschema xgrammar==0.2.7 soundfile 2> pip-deps.log \
  || { cat pip-deps.log; exit 1; }   # pip prints 'conflicts' for the CUDA-only requirements left out: expected
# PyPI's torchvision is a CUDA build: its C++ ops do not load beside CPU torch, and two registrations then raise
# at import ("operator torchvision::nms does not exist"). Comment those two decorators out (torchvision only).
sed -i -E 's/^@torch.library.register_fake\("torchvision::q?nms"\)/# &/' venv/lib/python3.11/site-packages/torchvision/_meta_registrations.py
# Import-only stand-in for the compiled CPU sgl_kernel
mkdir -p stub/sgl_kernel
cat > stub/sgl_kernel/__init__.py <<'PY'
"""Import-only stand-in for the compiled CPU build of sgl_kernel (not on PyPI).

sglang 0.5.23 with SGLANG_USE_CPU_ENGINE=1 imports a few `*_cpu` names from sgl_kernel at
module import time (speculative decoding, KV moves). Any such name resolves here to a
function that raises when called. The one with a plain-torch body is
assign_req_to_token_pool_cpu. Without AMX, everything else (RMSNorm, silu_and_mul, rotary,
linear, attention with torch_native) already takes sglang's own plain-torch path.
"""


def assign_req_to_token_pool_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    off = 0
    for r, s, e in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist()):
        n = e - s
        req_to_token[r, s:e] = out_cache_loc[off:off + n].to(req_to_token.dtype)
        off += n


def __getattr__(name):
    if not name.endswith("_cpu"):
        raise AttributeError(name)

    def f(*a, **k):
        raise NotImplementedError(f"sgl_kernel stub: {name} is not available")

    f.__name__ = name
    return f
PY
# Tiny random Llama (2 layers, hidden 64, vocab 1024, 3 safetensors shards) + locally trained BPE tokenizer
[ "$HERE" = "$DIR" ] || cp "$HERE/mkmodel.py" .
./venv/bin/python mkmodel.py "$DIR/models"
du -sm venv
cat <<MSG
Start a server:
  cd $DIR
  SGLANG_USE_CPU_ENGINE=1 HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 PYTHONPATH=$DIR/stub ./venv/bin/python -m sglang.launch_server \\
    --model-path $DIR/models/tiny-llama --device cpu --attention-backend torch_native --host 127.0.0.1 --port 31000 --max-total-tokens 20000
Two ranks (gloo): add  SGLANG_CPU_OMP_THREADS_BIND='0|1'  to the environment and  --tp 2  to the flags.
MSG
