"""Messages to look for: id, stage and wordings."""

# id | stage | wordings, oldest first.  A wording is searched in the source text, where f-string
# holes look like {expr}: a plain substring, or a regular expression after "~".  "=> x" gives what
# to look for in a log line when that differs (plain substring, or a regular expression after "re:").
MESSAGES = r"""
# --- line form
line-server-args | startup | ~^server_args=\{server_args\}$ => server_args=ServerArgs( | ~^server_args=\{.*(?:_dict|logging)\( => server_args={'
line-prefix-tp | line-prefix | ~(^| )TP\{ => re:\bTP\d+
line-prefix-dp | line-prefix | ~(^| )DP\{ => re:\bDP\d+
line-prefix-pp | line-prefix | ~(^| )PP\{ => re:\bPP\d+
line-prefix-ep | line-prefix | ~(^| )EP\{ => re:\bEP\d+
line-prefix-attn-cp | line-prefix | ~ATTN_CP\{ => re:\bATTN_CP\d+
line-prefix-moe-dp | line-prefix | ~MOE_DP\{ => re:\bMOE_DP\d+
batch-prefill | serving | ~^Prefill batch\(mixed => Prefill batch(mixed | ~^Prefill batch\.  => Prefill batch. | ~^Prefill batch\{iter_msg\},  => re:Prefill batch( \[\d+\])?,
batch-decode | serving | ~^Decode batch\.  => Decode batch. | ~^Decode batch\{iter_msg\},  => re:Decode batch( \[\d+\])?,
# --- startup stages
init-dist-begin | startup | Init nccl begin. | Init torch distributed begin.
init-dist-end | startup | Init torch distributed ends.
weights-begin | weights | Load weight begin. avail mem=
weights-end | weights | Load weight end.
kv-allocated | kv-cache | KV Cache is allocated. | ~is allocated\. dtype:|VA upper bound.*#tokens => re:(is allocated|VA upper bound)\. dtype: | KV cache allocated. dtype:
mamba-allocated | kv-cache | Mamba Cache is allocated.
pool-end | kv-cache | Memory pool end. avail mem=
graph-begin | cuda-graph | Capture cuda graph begin. | ~^Capture \{.{0,44}\} begin\. This => graph begin. This can take up to | ~^Capture \{capture_name\} .*begin => re:Capture \w+ .*graph begin\. backend=
graph-end | cuda-graph | Capture cuda graph end. | ~^Capture \{.{0,44}\} end\. Time => graph end. Time elapsed: | ~^Capture \{capture_name\} .*end => re:Capture \w+ .*graph end\. elapsed=
graph-draft-begin | cuda-graph | Capture draft cuda graph begin. | Capture draft decode CUDA graph begin.
graph-draft-extend-begin | cuda-graph | Capture draft extend cuda graph begin | Capture draft extend CUDA graph begin.
graph-progress | cuda-graph | Capturing batches (
graph-prefill-progress | cuda-graph | Capturing num tokens (num_tokens= | Capturing prefill shape (num_tokens=
limits-line | startup | max_total_num_tokens={self.max_total_num_tokens}, max_prefill_tokens => max_total_num_tokens= | ~^max_total_num_tokens=.*chunked_prefill_size= => max_total_num_tokens=
fired-up | startup | The server is fired up and ready to roll!
warmup-error | startup | Initialization failed. warmup error:
init-failed | startup | Initialization failed. Please see the error messages above.
warmup-pd-prefill | startup | Start of prefill warmup | Start of pd disaggregation warmup
autotune-flashinfer | startup | Running FlashInfer autotune
# --- memory
mem-not-enough | memory | Not enough memory. Please try to increase --mem-fraction-static.
mem-unbalanced | memory | The memory capacity is unbalanced.
mem-prefill-oom | memory | ~(Prefill|\{phase_str\}) out of memory. Try to lower your batch size. => out of memory. Try to lower your batch size
mem-decode-oom | memory | Decode out of memory. Try to lower your batch size.
mem-req-slots | memory | Out of memory. Please set a smaller number for `--max-running-requests`. | alloc_req_slots runs out of memory.
mem-retract | scheduling | Decode out of memory happened. | KV cache pool is full. Retract requests. | ~^(#retracted_reqs|, #new_token_ratio): => re:#(retracted_reqs|new_tokens_gained|new_token_ratio):
mem-retract-none-left | memory | Failed to retract any request. | Out of memory even after retracting all other requests
mem-pd-decode-full | memory | KV cache is full! Bug in memory estimation.
leak-kv | memory | KV cache pool leak detected! | token_to_kv_pool_allocator memory leak detected! | ~^\{pool_name\} memory leak detected! => memory leak detected!
leak-req | memory | Memory pool leak detected! | req_to_token_pool memory leak detected!
leak-total | memory | ~Mem Leak Detected! => Mem Leak Detected!
mem-multimodal-adjust | memory | Automatically reduce --mem-fraction-static | Multimodal model: Dynamically adjusted --mem-fraction-static
mem-pool-too-small | memory | Memory pool size is too small
mem-host-hicache | hicache | Not enough host memory available. Requesting
# --- cuda graph failure
graph-failed | cuda-graph | ~Capture (cuda|CUDA) graph failed: => re:Capture (cuda|CUDA) graph failed: | Capture prefill CUDA graph failed:
graph-hints | cuda-graph | ~Possible solutions:\n1\.  => Possible solutions:
graph-off-warning | cuda-graph | CUDA Graph is DISABLED. | Cuda graph is disabled because of using torch native
graph-off-prefill-pd | cuda-graph | Cuda graph is disabled for prefill server
graph-off-deepep | cuda-graph | Cuda graph is disabled because deepep_mode=`normal`
# --- numerics
nan-sampling | numerics | Detected errors during sampling!
nan-probe | numerics | NaN detected! | NaN detected in %s; values were sanitized => values were sanitized before sampling
nan-finish | numerics | NaN happened
spec-no-tree-kernel | numerics | Tree speculative sampling kernel unavailable
# --- quantization
fp8-kv-no-scale | quantization | Using FP8 KV cache but no scaling factors provided.
fp8-kv-scale-1 | quantization | Using KV cache scaling factor 1.0 for fp8_e4m3
kv-scale-deprecated | quantization | Found kv_scale in the checkpoint. This format is deprecated
kv-scale-name-miss | quantization | ~Found (kv_scale|\{scale_name\}) in the checkpoint .*but not found the expected name => not found the expected name in the model
deepgemm-ue8m0 | quantization | scale_fmt of checkpoint is not ue8m0
deepgemm-precompile | kernel-compile | Entering DeepGEMM JIT Pre-Complie session | Entering DeepGEMM JIT Pre-Compile session
deepgemm-single | kernel-compile | Entering DeepGEMM JIT Single Kernel Complie | Entering DeepGEMM JIT Single Kernel Compile
deepgemm-compiling | kernel-compile | DeepGEMM JIT Compiling for <
deepgemm-import | kernel-compile | Failed to import deepgemm, disable
deepgemm-missing | quantization | DeepGEMM backend requested via --fp8-gemm-backend=deep_gemm
deepgemm-nvrtc | kernel-compile | NVCC Compiler not found, use NVRTC for DeepGEMM
fp8-block-n | quantization | ~is not divisible by weight quantization block_[nk] => is not divisible by weight quantization block_
fp8-default-config | performance | Using default W8A8 Block FP8 kernel config.
moe-default-config | performance | ~Using default MoE (kernel )?config\. Performance might be sub-optimal => re:Using default MoE (kernel )?config\.
moe-triton-version | performance | Fallback to triton version
flashinfer-fp8-missing | quantization | FlashInfer FP8 GEMM requested via --fp8-gemm-backend=
fp8-no-native | quantization | Your GPU does not have native support for FP8
nvfp4-platform | quantization | Current platform does not support NVFP4
# --- attention / DSA
attn-default | attention | Attention backend not set. Use | Attention backend not explicitly specified. Use | Attention backend not specified. Use
attn-hybrid | attention | Using hybrid attention backend for decode and prefill
dsa-use | attention | Set nsa attention backend for DeepSeek NSA. | Use nsa attention backend for DeepSeek with DSA. | Use dsa attention backend for DeepSeek with DSA.
dsa-kv-dtype | attention | ~Setting KV cache dtype to .*DeepSeek (NSA|DSA) => re:Setting KV cache dtype to .* for DeepSeek
dsa-fp8-backend | attention | Setting NSA backend to | Setting DSA backend to
dsa-page-size | attention | ~Setting page size to .*DeepSeek (NSA|DSA) => re:Setting page size to \d+ for DeepSeek
dsa-explicit-kv | attention | ~When specifying --(nsa|dsa)-prefill-backend or => re:When specifying --(nsa|dsa)-prefill-backend or
dsa-unsupported | attention | Unsupported NSA_PREFILL_IMPL | ~Unsupported (nsa_impl|dsa_impl|self\.nsa|self\.dsa) => re:Unsupported (self\.)?(nsa|dsa)_
mla-page-size | attention | FlashMLA only supports a page_size of 64
trtllm-mla-arch | attention | TRTLLM MLA backend is only supported on Blackwell
trtllm-mha-arch | attention | ~TRTLLM MHA backend .*is only supported on Blackwell => re:TRTLLM MHA backend .*only supported on Blackwell
fa3-fp8-kv | attention | FlashAttention3 only supports fp8_e4m3 if using FP8
dp-chunked | parallel | DP attention is enabled. The chunked prefill size is adjusted
# --- model / config
rope-transformers | load | Transformers version {tf_version_str} is used for model type => is used for model type
transformers-unsupported | load | Transformers version {tf_version_str} is not supported for model => is not supported for model
rope-unknown | load | Unknown RoPE scaling type
arch-unsupported | load | Unsupported architectures: | ~Model architectures \{.*\} are not supported for now => are not supported for now. Supported architectures
arch-fallback | load | has no SGLang implementation, falling back to Transformers
arch-inspect-failed | load | failed to be inspected. Please check the logs
import-ignored | load | Ignore import error when loading
weight-shape | load | Attempted to load weight (
weight-param-missing | load | ~not found in (params_dict|the model)\. => re:not found in (params_dict|the model)\.
weight-divisible | load | ~^\{\} is not divisible by \{\} => is not divisible by
tokenizer-custom | tokenizer | Failed to load the tokenizer. If the tokenizer is a custom
tokenizer-slow | tokenizer | Using a slow tokenizer.
config-missing | load | Can't find config file in
pkg-too-old | version | is installed with version {installed_version}, which is less than => which is less than the minimum required version
ctx-override-warn | load | ~context_length .*is greater than the derived => is greater than the derived context_length
# --- distributed
car-no-p2p | distributed | Custom allreduce is disabled because your platform lacks GPU P2P | {cls_name} is disabled because your platform lacks GPU P2P => is disabled because your platform lacks GPU P2P
car-world-size | distributed | Custom allreduce is disabled due to an unsupported world size | ~\{cls_name\} is disabled due to an unsupported world size => is disabled due to an unsupported world size
car-pcie | distributed | ~is disabled because it's not supported on more than two PCIe-only => not supported on more than two PCIe-only GPUs
car-nodes | distributed | ~is disabled because this process group spans across nodes => because this process group spans across nodes
car-setup-failed | distributed | Setup Custom allreduce failed with
p2p-cache | distributed | ~(generating|reading) GPU P2P access cache => re:(generating|reading) GPU P2P access cache
nccl-version | distributed | sglang is using nccl==
nccl-error | distributed | NCCL error: {error_str} => NCCL error:
arfusion-failed | distributed | Failed to initialize FlashInfer workspace | FlashInfer allreduce fusion disabled globally
port-in-use | network | Port %d is already in use, trying port => is already in use, trying port | Port is already in use. dist_init_port=
port-wait | network | ~is not available in \{timeout_s\} seconds => re:is not available in \S+ seconds
# --- process death, health, hang
exc-scheduler | crash | Scheduler hit an exception:
exc-dp-controller | crash | DataParallelController hit an exception:
exc-detokenizer | crash | DetokenizerManager hit an exception:
exc-tokenizer | crash | TokenizerManager hit an exception:
sigquit | crash | ~Received sigquit from a child proces{1,2}\. => Received sigquit from a child proces | SIGQUIT received. signum=
child-exit | crash | Child process unexpectedly failed with | ~Subprocess \{name\} \(pid=.*crashed with exit code => re:Subprocess \S+ \(pid=\d+\) crashed with exit code
rank-dead | crash | scheduler is dead. Please check if there are relevant logs | scheduler died during initialization (exit code
proc-terminated | crash | Scheduler or DataParallelController
watchdog | hang | Watchdog timeout ( | {self.debug_name} watchdog timeout ( => watchdog timeout (
pyspy | hang | ~Pyspy (dump|failed) => re:Pyspy (dump|failed)
health-detok | health | Server couldn't get a response from detokenizer for last
health-shutdown | health | Health check request received during shutdown
sigterm-unhealthy | health | Signal SIGTERM received while health check failed.
state-deleted | serving | but the state was deleted in
decode-status-missing | serving | Decode status not found for request
client-gone | serving | Request is disconnected from the client side
input-too-long | request | is longer than the model's context length
input-exceeds-max | request | exceeds the maximum allowed length
total-too-long | request | Requested token count exceeds the model's maximum context length
truncated-req | request | Request length is longer than the KV cache pool size
queue-full | request | The request queue is full.
# --- speculative / scheduler modes
spec-overlap-off | scheduling | ~Overlap scheduler is disabled (because of using eagle|when spec v2 is off) => Overlap scheduler is disabled
spec-v2-on | scheduling | Beta spec is enabled | ~Spec v2 is enabled => Spec v2 is enabled
spec-v2-removed | scheduling | SGLANG_ENABLE_SPEC_V2 has been removed
spec-max-running | scheduling | Max running requests is reset to
spec-topk-page | scheduling | > 1 with page_size
# --- PD
pd-bootstrap-failed | pd | Prefill bootstrap failed for request
pd-prefill-transfer-failed | pd | Prefill transfer failed for request
pd-handshake-failed | pd | Decode handshake failed for request
pd-decode-transfer-failed | pd | Decode transfer failed for request
pd-kv-error | pd | KVTransferError(bootstrap_room=
pd-lost-node | pd | ~Los(t|ing) connection with (prefill|decode) instance => re:Los(t|ing) connection with (prefill|decode) instance
pd-prefill-info | pd | Error fetching prefill info from bootstrap
pd-register-failed | pd | ~Prefill (instance )?[Ff]ailed to (connect to|register to) bootstrap server => re:[Ff]ailed to (connect|register) to bootstrap server
pd-request-timeout | pd | ~timed out after .*in KVPoll => re:timed out after .* in KVPoll
pd-mooncake-init | pd | Mooncake Transfer Engine initialization failed
# --- HiCache
hicache-alloc | hicache | ~Allocating .* host memory for => re:Allocating .* GB host memory for
hicache-size-small | hicache | The host memory should be larger than the device memory
hicache-radix-excl | hicache | ~enable-hierarchical-cache and disable-radix-cache are mutually exclusive => enable-hierarchical-cache and disable-radix-cache are mutually exclusive
hicache-fa3-io | hicache | FlashAttention3 decode backend is not compatible with hierarchical
# --- LoRA
lora-backend | lora | as backend of LoRA kernels.
lora-modules | lora | ~contains target modules .*that are not included in the specified => that are not included in the specified
lora-rank | lora | is incompatible with the current LoRA memory pool
lora-not-loaded | lora | ~(The following requested LoRA adapters are not loaded|LoRA adapter .*is not loaded) => re:LoRA adapters? .*(is|are) not loaded
lora-off | lora | --enable-lora is set to False, any provided
# --- grammar
grammar-timeout | grammar | Grammar preprocessing timed out
grammar-invalid | grammar | Skip invalid grammar: | Hit invalid grammar:
grammar-accept-failed | grammar | Grammar accept_token failed for req
grammar-tokenizer | grammar | Grammar backend disabled because tokenizer
"""


def msg_table():
    for line in MESSAGES.strip().splitlines():
        if line.strip() and not line.startswith("#"):
            parts = [p.strip() for p in line.split(" | ")]
            yield parts[0], parts[1], parts[2:]
