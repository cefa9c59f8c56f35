"""Start-up findings hold in the wordings of other releases, and their look-alikes do not win."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.analysis import analyze

TRACE = 'Traceback (most recent call last):\n  File "/srv/py/site-packages/{frame}", line 88, in {function}\n{error}\n'
LOADING = "[2026-02-03 10:00:00 TP1] Load weight begin. avail mem=70.12 GB\n[2026-02-03 10:00:05 TP1] Scheduler hit an exception: "


def config(error: str, frame: str = "sglang/srt/server_args.py", function: str = "__post_init__") -> str:
    return TRACE.format(frame=frame, function=function, error=error)


def load(error: str, frame: str = "sglang/srt/model_loader/loader.py", function: str = "load_model") -> str:
    return LOADING + TRACE.format(frame=frame, function=function, error=error)


SAFETENSORS = "safetensors_rust.SafetensorError: Error while deserializing header: "
WORDINGS = [
    ("no-accelerator-visible", config("RuntimeError: No accelerator (CUDA, XPU, HPU) is available.")),
    (
        "no-accelerator-visible",
        config("RuntimeError: No CUDA GPUs are available", "torch/cuda/__init__.py", "_lazy_init"),
    ),
    (
        "nvidia-driver-library-not-visible",
        config("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    ),
    (
        "cuda12-package-on-cuda13",
        config("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"),
    ),
    (
        "sgl-kernel-torch-abi-mismatch",
        config(
            "ImportError: /srv/py/sgl_kernel/sm90/common_ops.abi3.so: undefined symbol: _ZN3c104impl12PyObjectSlotD1Ev"
        ),
    ),
    ("sgl-kernel-not-installed", config("ModuleNotFoundError: No module named 'sgl_kernel.kvcacheio'")),
    (
        "flashinfer-companion-version-mismatch",
        config("RuntimeError: flashinfer-jit-cache version (0.5.2+cu129) does not match flashinfer version (0.5.3)."),
    ),
    (
        "flashinfer-below-minimum",
        config(
            "Exception: flashinfer_python is installed with version 0.2.3, which is less than the minimum required version 0.2.5."
        ),
    ),
    (
        "triton-newer-than-sglang",
        config("ImportError: cannot import name 'get_cuda_stream' from 'triton.runtime.jit' (/srv/py/jit.py)"),
    ),
    (
        "transformers-dependency-pin-conflict",
        config(
            "ImportError: tokenizers>=0.22.0,<=0.23.0 is required for a normal functioning of this module, but found tokenizers==0.21.1."
        ),
    ),
    ("installed-without-runtime-extras", config("ModuleNotFoundError: No module named 'orjson'")),
    ("openai-client-too-old", config("ModuleNotFoundError: No module named 'openai.types.responses'")),
    ("truncated-weight-file", load(SAFETENSORS + "MetadataIncompleteBuffer")),
    (
        "truncated-weight-file",
        load("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"),
    ),
    ("git-lfs-pointer-instead-of-weights", load(SAFETENSORS + "HeaderTooLarge")),
    ("git-lfs-pointer-instead-of-weights", load("_pickle.UnpicklingError: invalid load key, 'v'.")),
    (
        "config-checkpoint-shape-mismatch",
        load(
            "AssertionError: self.org_vocab_size=32064 self.use_presharded_weights=False loaded_weight.shape[output_dim]=32000"
        ),
    ),
    (
        "config-checkpoint-shape-mismatch",
        load("AssertionError: Attempted to load weight (torch.Size([512, 64])) into parameter (torch.Size([640, 64]))"),
    ),
    (
        "checkpoint-key-naming-mismatch",
        load(
            "KeyError: 'language_model.model.layers.0.mlp.gate_up_proj.weight'",
            "sglang/srt/models/llama.py",
            "load_weights",
        ),
    ),
    (
        "architecture-not-registered",
        load(
            "ValueError: Model architectures ['NovaLM'] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM'])"
        ),
    ),
    (
        "hub-offline-model-not-cached",
        config(
            "OSError: Cannot reach https://huggingface.co/org/nova/resolve/main/config.json: offline mode is enabled."
        ),
    ),
    (
        "local-model-path-not-found",
        config(
            "OSError: Incorrect path_or_model_id: '/data/nova'. Please provide either the path to a local folder or the repo_id."
        ),
    ),
    (
        "config-missing-architectures",
        config("TypeError: 'NoneType' object is not iterable", "sglang/srt/configs/model_config.py", "__init__"),
    ),
    (
        "tokenizer-files-missing",
        config(
            "OSError: Can't load tokenizer for '/data/nova'. If you were trying to load it from 'https://huggingface.co/models'"
        ),
    ),
    (
        "unrecognized-flag",
        "usage: sglang serve [-h]\nsglang serve: error: unrecognized arguments: --gpu-memory-utilization 0.9\n",
    ),
    (
        "deprecated-flag-removed",
        "usage: sglang serve [-h]\nsglang serve: error: unrecognized arguments: --nsa-decode-backend fa3\n",
    ),
    (
        "invalid-flag-choice",
        "usage: x [-h]\nlaunch_server.py: error: argument --tensor-parallel-size/--tp-size: invalid int value: 'two'\n",
    ),
    (
        "dp-attention-size-not-dividing-tp",
        config(
            "    assert self.tp_size % self.dp_size == 0\nAssertionError",
            "sglang/srt/server_args.py",
            "check_server_args",
        ),
    ),
    (
        "http-port-in-use",
        "[2026-02-03 10:00:09] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): [errno 98] address already in use\n",
    ),
    (
        "tp-size-exceeds-visible-gpus",
        "[2026-02-03 10:00:02 TP2] Context: self.device='cuda' ps.gpu_id=2 os.environ.get('CUDA_VISIBLE_DEVICES')=None\n"
        + config("RuntimeError: CUDA error: invalid device ordinal", "torch/cuda/__init__.py", "set_device"),
    ),
]


@pytest.mark.parametrize(("finding", "log"), WORDINGS, ids=[f"{f}-{i}" for i, (f, _) in enumerate(WORDINGS)])
def test_wording_of_another_release_is_known(finding: str, log: str, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(log)
    hypotheses = [h for h in analyze([str(path)]).launches[-1].hypotheses if h.verdict != "ruled-out"]
    assert [h.finding for h in hypotheses][:1] == [finding]
