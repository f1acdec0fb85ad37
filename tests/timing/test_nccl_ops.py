"""Work of NCCL in a trace of PyTorch: one op for each collective, whatever launched it."""

import json

import peakline

US = 10**6


def test_the_kernels_of_a_collective_are_one_op(tmp_path):
    def x(cat, name, ts, dur, pid=7, tid=7, **args):
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
                "args": args}  # fmt: skip

    def kernel(name, ts, dur, correlation):
        return x("kernel", name, ts, dur, 0, 20, device=0, stream=20, correlation=correlation)

    record = {"Collective name": "allreduce", "Process Group Name": "0"}
    generic = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    ring = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    events = [
        x("cpu_op", "c10d::allreduce_", 0, 40),
        x("cpu_op", "record_param_comms", 5, 30, **record),
        x("cuda_runtime", "cudaLaunchKernelExC", 10, 5, correlation=1),
        kernel(generic, 50, 100, 1),
        # Launched by c10d's op alone, and by nothing that is recorded.
        x("cpu_op", "c10d::allreduce_", 200, 40),
        x("cuda_runtime", "cudaLaunchKernelExC", 210, 5, correlation=2),
        kernel(ring, 250, 70, 2),
        kernel(ring, 400, 30, 99),
        x("cpu_op", "aten::mm", 500, 40),
        x("cuda_runtime", "cudaLaunchKernel", 510, 5, correlation=3),
        x("kernel", "gemm", 520, 11, 0, 7, device=0, stream=7, correlation=3),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    rows = peakline.open(str(path)).table("op_stats").to_pylist()
    device = {row["op"]: row["self_ps"] // US for row in rows if row["side"] == "device"}
    device.pop("IDLE", None)
    assert device == {"nccl:all_reduce": 100 + 70 + 30, "aten::mm": 11}
    kernels = peakline.open(str(path)).table("kernels").to_pylist()
    assert {row["op"] for row in kernels if "nccl" in row["kernel"]} == {"nccl:all_reduce"}
