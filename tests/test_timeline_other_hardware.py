"""What AMD's, Ascend's and the cluster's own lines state, and what is only advice."""

from __future__ import annotations

from pathlib import Path

from forensics.analysis import read, report
from forensics.knowledge.store import load
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

START = (
    "[2026-03-04 05:06:07] server_args=ServerArgs(model_path='/m/q', tp_size=2, base_gpu_id=0, dp_size=1, pp_size=1)\n"
)
BATCH = "[2026-03-04 05:09:07 TP0] Decode batch, #running-req: 3, #token: 90, token usage: 0.02, #queue-req: 0\n"
ADVICE = (
    "\n[2026-03-04 05:06:1{n}] amd-1:410{n}:410{n} [{n}] /src/rccl/init.cc:213 NCCL WARN "
    'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!\n'
)


def _launch(tmp_path: Path, text: str) -> LaunchInfo:
    path = tmp_path / "a.log"
    path.write_text(text, encoding="utf-8")
    knowledge = load()
    found = report(read([str(path)], Options(), knowledge), Options(), knowledge)
    return next(x for x in found.launches if x.id == found.focus)


def _first(launch: LaunchInfo) -> int:
    assert launch.first_failure is not None
    return launch.first_failure.where.line


def test_advice_of_rccl_is_no_failure(tmp_path: Path) -> None:
    launch = _launch(tmp_path, START + ADVICE.format(n=0) + ADVICE.format(n=1) + BATCH)
    assert launch.first_failure is None and not launch.hypotheses


def test_what_fails_behind_advice_is_the_first_failure(tmp_path: Path) -> None:
    shm = (
        "amd-1:4101:4101 [1] /src/rccl/misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab12Cd to "
        "33030532 bytes, error: No space left on device (28)\n"
    )
    launch = _launch(tmp_path, START + ADVICE.format(n=0) + shm)
    assert _first(launch) == 4
    assert launch.hypotheses[0].finding == "shm-too-small-for-nccl"


def test_a_count_of_uncorrectable_errors_states_a_faulty_gpu(tmp_path: Path) -> None:
    ras = "amdgpu 0000:85:00.0: amdgpu: socket: 5, die: 0, {} uncorrectable hardware errors detected in umc block\n"
    assert _launch(tmp_path, START + BATCH + ras.format("no")).first_failure is None
    launch = _launch(tmp_path, START + BATCH + ras.format("1"))
    assert (_first(launch), launch.hypotheses[0].finding) == (3, "gpu-ecc-uncorrectable")


def test_a_queue_that_the_runtime_aborts_is_a_fault(tmp_path: Path) -> None:
    line = (
        ":0:rocdevice.cpp            :3020: 21013377381010 us: [pid:901   tid:0x7f04e7fff640] Callback: Queue "
        "0x7f04d4000000 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware "
        "exception. code: 0x1016\nFatal Python error: Aborted\n"
    )
    assert _first(_launch(tmp_path, START + BATCH + line)) == 3


def test_a_device_beyond_ascends_range_is_one_that_does_not_exist(tmp_path: Path) -> None:
    trace = (
        "[2026-03-04 05:06:11 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/model_executor/model_runner.py", line 734, in init_torch_distributed\n'
        "    torch.get_device_module(self.device).set_device(self.gpu_id)\n"
        "RuntimeError: GetDevice:compiler_depend.ts:46 NPU function error: SetDevice(id), error code is 107001\n"
        "[Error]: Invalid device ID.\n        Check whether the device ID is valid.\n"
        "EE1001: [PID: 8109] The argument is invalid.Reason: Set device failed, invalid device, set device=1, "
        "valid device range is [0, 1)\n"
    )
    launch = _launch(tmp_path, START + trace)
    assert launch.hypotheses[0].finding == "tp-size-exceeds-visible-gpus"


def test_a_watchdog_thread_that_met_a_device_error_waited_for_nobody(tmp_path: Path) -> None:
    line = (
        "[rank1]:[E304 05:06:28.118211 ProcessGroupNCCL.cpp:2057] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog "
        "thread terminated with exception: HIP error: operation not permitted on an event last recorded in a capturing "
        "stream\n"
    )
    capture = "[2026-03-04 05:06:20 TP0] Capture cuda graph begin. This can take up to several minutes.\n"
    launch = _launch(tmp_path, START + capture + line)
    assert all("wait ran out" not in h.title for h in launch.hypotheses)


def test_a_terminated_container_is_no_server_that_serves(tmp_path: Path) -> None:
    tail = "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n"
    assert _first(_launch(tmp_path, START + BATCH + tail)) == 4


def test_an_announced_end_of_a_child_is_told_where_nothing_else_is(tmp_path: Path) -> None:
    end = "[2026-03-04 05:09:09] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
    launch = _launch(tmp_path, START + BATCH + end)
    assert launch.first_failure is None  # the launcher's word is no failure's
    assert [h.verdict for h in launch.hypotheses] == ["possible"]
    stopped = "[2026-03-04 05:09:08] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    assert not _launch(tmp_path, START + BATCH + stopped + end).hypotheses


def test_a_probe_of_kubernetes_that_ends_the_container_is_told(tmp_path: Path) -> None:
    event = "  Normal   Killing    2m    kubelet  Container sglang failed liveness probe, will be restarted\n"
    launch = _launch(tmp_path, START + "[2026-03-04 05:06:20 TP0] Load weight begin. avail mem=78.10 GB\n" + event)
    assert _first(launch) == 3
    assert launch.hypotheses[0].title.startswith("Kubernetes ended the container")
