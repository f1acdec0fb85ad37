"""Failures of drivers, libraries, engines and hosts, each in words of its writer and odd ones."""

import pytest
from tests.each_row import each_row
from tests.formats.oom_texts import GIB, KIB, MIB, findings_of, parts_of, read

from peakline import open as open_profile
from peakline.errors import UnknownFormatError

B = "requested_bytes"


@each_row(
    ("text", "allocator", "cause", "numbers"),
    [
        ("12:01 ERROR RuntimeError: CUDA error: out of memory", "cuda", "driver", {}),
        ("[rank3]: torch.AcceleratorError: CUDA error: out of memory", "cuda", "driver", {}),
        (
            ("tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node "
            "__wrapped__Mul_device_/job:x}} failed to allocate memory [Op:Mul] name: "),
            "",
            "driver",
            {"op": "Mul"},
        ),
        ("InternalError: Dst tensor is not initialized.", "", "library", {}),
        ("RuntimeError: HIP error: out of memory", "cuda", "driver", {}),
        ("OSError: (External) CUDA error(2), out of memory. [Hint", "cuda", "driver", {}),
        ("RuntimeError: CUDA driver error: out of memory", "cuda", "driver", {}),
        ("cuda runtime error (2) : out of memory at THCStorage.cu:58", "cuda", "driver", {}),
        ("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", "cuda", "driver", {}),
        (
            ("E c.cc:1] failed to allocate 1.50GiB (1610612737 bytes) from device: "
            "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
            "",
            "driver",
            {B: 1610612737},
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(h)`",
            "cublas",
            "library",
            {},
        ),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cudnn", "library", {}),
        ("Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED", "cudnn", "library", {}),
        (
            "node1:7:9 [0] x.cc:1 NCCL WARN Failed to CUDA calloc async 16777216 bytes",
            "nccl",
            "library",
            {B: 16 * MIB},
        ),
        ("NCCL WARN Cuda failure 2 'out of memory'", "nccl", "library", {}),
        (
            ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes "
            "(allocated so far: 1,024 bytes, limit set to: 4,294,967,296 bytes)."),
            "cupy",
            "larger_than_limit",
            {B: 8 * GIB, "in_use_bytes": 1024, "limit_bytes": 4 * GIB},
        ),
        (
            "out of memory to allocate 250092544 bytes (total 10824923136 bytes)",
            "cupy",
            "driver",
            {B: 250092544, "pool_bytes": 10824923136},
        ),
        (
            ("Out of memory error on GPU 0. Cannot allocate 400.000244MB memory on GPU 0, "
            "7.288696GB memory has been allocated and available memory is only 155.187500MB."),
            "paddle",
            "full",
            {B: round(400.000244 * MIB), "in_use_bytes": round(7.288696 * GIB),
             "device_free_bytes": round(155.1875 * MIB), "device": "GPU 0"},
        ),
        (
            ("Out of memory error on GPU 3. Cannot allocate 145.500000MB GPU memory, available "
            "memory is 72.500000MB."),
            "paddle",
            "full",
            {B: round(145.5 * MIB), "device_free_bytes": round(72.5 * MIB)},
        ),
        (
            ("onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory "
            "for requested buffer of size 15728896"),
            "onnxruntime",
            "driver",
            {B: 15728896},
        ),
        (
            "Available memory of 4096 is smaller than requested bytes of 8192",
            "onnxruntime",
            "full",
            {B: 8192, "device_free_bytes": 4096},
        ),
        (
            ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array "
            "with shape (100000, 100000) and data type float64"),
            "host",
            "host_memory",
            {B: round(74.5 * GIB), "shape": "(100000, 100000)", "data_type": "float64"},
        ),
        ("FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::939524096 (896)MB", "hpu",
         "driver", {B: 939524096}),
        (
            ("[metal::malloc] Attempting to allocate 9663676416 bytes which is greater than the "
            "maximum allowed buffer size of 8589934592 bytes."),
            "metal",
            "larger_than_limit",
            {B: 9 * GIB, "limit_bytes": 8 * GIB},
        ),
        # The host.
        (
            ("ERROR: Unexpected bus error. It is possible that dataloader's workers are out of "
            "shared memory. Please try to raise your shared memory limit."),
            "shm",
            "shared_memory",
            {},
        ),
        ("RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error.", "shm",
         "shared_memory", {"op": "812"}),
        ("RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed.", "host", "killed",
         {"op": "812"}),
        ("container exited with code 137", "host", "killed", {}),
        ("traceback : Signal 9 (SIGKILL) received by PID 4711", "host", "killed", {"op": "4711"}),
        ("run.sh: line 66: 777016 Killed                  python train.py", "host", "killed",
         {"op": "777016"}),
        ("    Last State:  Terminated\n      Reason:  OOMKilled\n      Exit Code: 137", "container",
         "host_limit", {}),
        ('"State": {"OOMKilled": true, "ExitCode": 137}', "container", "host_limit", {}),
        ("The node was low on resource: memory. Threshold quantity: 100Mi", "node", "host_full",
         {}),
        (("slurmstepd: error: Detected 2 oom_kill events in StepId=43.67. Some of the step tasks "
         "have been OOM Killed."), "slurm", "host_limit", {"op": "43.67"}),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in step 37.batch cgroup.", "slurm",
         "host_limit", {"op": "37.batch"}),
        ("srun: error: node107: task 0: Out Of Memory", "slurm", "host_limit", {}),
        ("37    train  OUT_OF_ME+  0:125", "slurm", "host_limit", {}),
        ("slurmstepd: Step 9.0 exceeded memory limit (2097252 > 2097152), being killed", "slurm",
         "host_limit", {"in_use_bytes": 2097252 * KIB, "limit_bytes": 2 * GIB}),
        ("=>> PBS: job killed: mem 1048700kb exceeded limit 1048576kb", "pbs", "host_limit",
         {"limit_bytes": GIB}),
        (
            ("Task was killed due to the node running low on memory.\nMemory on the node (IP: "
            "10.0.0.7, ID: ab) where the task (task ID: x, name=f) was running was 61.50GB / "
            "64.00GB (0.961), which exceeds the memory usage threshold of 0.95."),
            "ray node",
            "host_full",
            {},
        ),
        ("oom_group_kill 0\noom_kill 2\n", "cgroup", "host_limit", {}),
    ],
)  # fmt: skip
def test_one_line_says_it(text, allocator, cause, numbers):
    result = findings_of(f"epoch 1 begins\n{text}\n")[-1]
    assert (result.evidence["allocator"], result.evidence["cause"]) == (allocator, cause)
    assert {name: result.evidence.get(name) for name in numbers} == numbers


@each_row(
    "text",
    [
        '"State": {"OOMKilled": false, "ExitCode": 0}',
        "oom_kill 0",
        "exited with code 0, 137 files",
        "enum Status { OUT_OF_MEMORY = 5 }",
        "ggml: failed to allocate nothing",
        "the shared memory is fine",
    ],
)
def test_what_is_no_failure(text):
    assert findings_of(text) == []


def test_signal_9_alone_is_no_evidence():
    (result,) = findings_of("pod/train-0 failed, exit code: 137\n")
    assert result.severity == "warning"
    assert "does not say that memory ran out" in result.title
    assert "alone is no evidence" in result.suggestion


def test_what_follows_a_failure_is_not_its_cause():
    text = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of "
        "which 1.00 GiB is free.\n"
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
        "terminate called after throwing an instance of 'std::bad_alloc'\n"
        "exitcode  : -9 (pid: 4)\nSignal 9 (SIGKILL) received by PID 4\n"
    )
    assert [one.evidence["allocator"] for one in findings_of(text)] == ["cuda:0"]


GGML = """
load_tensors:        CUDA0 model buffer size = 48928.09 MiB
srv  load: load_tensors:   CPU_Mapped model buffer size =   512.00 MiB
llama_kv_cache_init:      CUDA0 KV buffer size =   379.50 MiB
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144.00 MiB{on}: cudaMalloc failed: out of memory
{then} failed to allocate CUDA4 buffer of size 150995968
llama_new_context_with_model: failed to allocate compute buffers
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144.00 MiB{on}: cudaMalloc failed: out of memory
{then} failed to allocate CUDA4 buffer of size 150995968
"""  # noqa: E501 (as it is printed)


@each_row(
    ("on", "then", "stage", "advice"),
    [
        (" on device 4", "ggml_gallocr_reserve_n:", "compute buffer", "-ub"),
        ("", "ggml_gallocr_reserve_n_impl:", "compute buffer", "-ub"),
        (" on device 4", "alloc_tensor_range:", "weights", "-ngl"),
    ],
)
def test_llama_cpp(on, then, stage, advice):
    (result,) = findings_of(GGML.format(on=on, then=then))
    assert (result.evidence["allocator"], result.evidence["op"]) == ("CUDA4", stage)
    assert result.evidence[B] == 150995968
    assert advice in result.suggestion
    assert parts_of(result) == {
        "weights CUDA0": round(48928.09 * MIB),
        "weights CPU_Mapped": 512 * MIB,
        "kv_cache CUDA0": round(379.5 * MIB),
    }


VLLM = """
(Worker_TP1 pid=9) INFO 07-03 [m.py:1] Model loading took 15.36 GiB{memory} and 3.1 seconds
(Worker_TP1 pid=9) INFO 07-03 [m.py:1] Available KV cache memory: {left} GiB
(Worker_TP1 pid=9) INFO 07-03 [m.py:1] Graph capturing finished in 5 secs, took 0.50 GiB
{error}
"""
NEEDS = (
    "ValueError: To serve at least one request with the model{s} max seq len (131072), {a}24.00 "
    "GiB KV cache is needed, which is larger than the available KV cache memory (10.91 GiB). {b}"
)


@each_row(
    ("words", "fits"),
    [
        ({"s": "s's", "a": "", "b": "Based on the available memory, the estimated maximum model "
                                    "length is 59584. Try"}, "59,584 tokens would fit"),
        ({"s": "'s", "a": "(", "b": "Try increasing `gpu_memory_utilization`"}, "10.9 GiB at most"),
    ],
)  # fmt: skip
def test_a_kv_cache_that_does_not_fit(words, fits):
    text = VLLM.format(left="10.91", memory=" memory", error=NEEDS.format(**words))
    (result,) = findings_of(text + text)
    assert result.evidence["cause"] == "cache_budget"
    assert (result.evidence[B], result.evidence["limit_bytes"]) == (24 * GIB, round(10.91 * GIB))
    assert fits in result.title
    assert "max_model_len" in result.suggestion
    assert "mem-fraction-static" not in result.suggestion
    assert parts_of(result) == {
        "weights": round(15.36 * GIB),
        "kv_cache": round(10.91 * GIB),
        "graphs": GIB // 2,
    }


def test_a_budget_without_a_failure():
    text = (
        "INFO the current vLLM instance can use total_gpu_memory (15.77GiB) x "
        "gpu_memory_utilization (0.90) = 14.20GiB\nINFO model weights take 7.51GiB; "
        "non_torch_memory takes 0.39GiB; PyTorch activation peak memory takes 2.53GiB; the rest of "
        "the memory reserved for KV Cache is 3.76GiB.\n"
    )
    (result,) = findings_of(text)
    assert (result.severity, result.evidence["cause"]) == ("info", "budget")
    sizes = parts_of(result)
    spent = sum(sizes[n] for n in ("weights", "outside_allocator", "activations", "kv_cache"))
    assert abs(spent - sizes["budget"]) < 0.02 * GIB
    assert sizes["device"] == round(15.77 * GIB)


def test_each_engine_has_its_own_advice():
    (more,) = findings_of(
        "[2025-11-04 TP0] Load weight end. type=X, avail mem=22.01 GB, mem usage=3.00 GB.\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current "
        "value: mem_fraction_static=0.7\n"
    )
    assert "mem-fraction-static leaves" in more.suggestion
    assert "Raise it" in more.suggestion
    assert parts_of(more) == {"weights": 3 * GIB}
    (less,) = findings_of(
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB. GPU "
        "0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.\n"
    )
    assert less.evidence["op"] == "CUDA graph capture"
    assert "lower that share" in less.suggestion


def test_a_device_that_is_taken_when_an_engine_starts():
    (result,) = findings_of(
        "ValueError: Free memory on device cuda:2 (10.50/79.25 GiB) on startup is less than "
        "desired GPU memory utilization (0.9, 71.25 GiB). Decrease\n"
    )
    assert result.evidence["cause"] == "other_processes"
    assert result.evidence[B] == round(71.25 * GIB)
    assert result.evidence["device_free_bytes"] == round(10.5 * GIB)
    assert result.evidence["capacity_bytes"] == round(79.25 * GIB)


KERNEL = """
{p}CPU 11/KVM invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
{p}memory: usage 8388608kB, limit 8388608kB, failcnt 77
{p}swap: usage 0kB, limit 9007199254740988kB, failcnt 0
{p}Tasks state (memory values in pages):
{p}[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
{p}[   4711]  1000  4711  9000000  1500000    77824        0             0 data loader
{p}[   4712]  1000  4712   500000   250000    77824        0           100 python
{p}oom-kill:constraint=CONSTRAINT_{c},nodemask=(null),cpuset=/,mems_allowed=0-1,oom_memcg=/slurm/job_7,task_memcg=/slurm/job_7/step_0,task=python,pid=4712,uid=1000
{p}{verdict}: Killed process 4712 (python) total-vm:2000000kB, anon-rss:900000kB, file-rss:1000kB, shmem-rss:99000kB, UID:1000 pgtables:77kB oom_score_adj:100
{p}oom_reaper: reaped process 4712 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
"""  # noqa: E501 (as the kernel prints it)


@each_row("prefix", ["", "[12345.678901] ", "Feb 03 19:57:08 host kernel: ",
                     "[四 3月 20 21:01:25 2025] ", "2026-01-02T03:04:05Z stderr F "])  # fmt: skip
def test_the_kernel_kills_at_the_limit_of_a_group(prefix):
    text = KERNEL.format(p=prefix, c="MEMCG", verdict="Memory cgroup out of memory")
    (result,) = findings_of(text)
    evidence = result.evidence
    assert (evidence["cause"], evidence["op"]) == ("host_limit", "python (pid 4712)")
    assert (evidence["in_use_bytes"], evidence["limit_bytes"]) == (8 * GIB, 8 * GIB)
    assert evidence["device"] == "/slurm/job_7"
    assert parts_of(result) == {
        "process data loader (pid 4711)": 1500000 * 4096,
        "process python (pid 4712)": 250000 * 4096,
        "anonymous": 900000 * KIB,
        "file_pages": 1000 * KIB,
        "shared_memory": 99000 * KIB,
        "virtual": 2000000 * KIB,
    }


def test_the_machine_is_full():
    text = KERNEL.format(p="", c="NONE", verdict="Out of memory")
    (result,) = findings_of(text)
    assert result.evidence["cause"] == "host_full"
    assert "limit_bytes" not in result.evidence


def test_the_kernel_before_4_19():
    (result,) = findings_of(
        "[9.1] Out of memory: Kill process 31 (my job) score 900 or sacrifice child\n"
        "[9.2] Killed process 31 (my job) total-vm:77kB, anon-rss:55kB, file-rss:3kB\n"
    )
    assert result.evidence["op"] == "my job (pid 31)"
    assert parts_of(result)["anonymous"] == 55 * KIB


def test_words_that_nobody_knows_are_not_denied(tmp_path):
    log = tmp_path / "strange.log"
    log.write_text("start\nfrobnicator ran OUT, out of memory in stage \x1b[31m7\n")
    with pytest.raises(UnknownFormatError, match=r"memory ran out by this log, in words that"):
        open_profile(log)


def test_a_log_of_many_lines_stays_quick():
    from tests.hanging import no_hang

    line = "out of memory? Killed process ( constraint= allocating [[ shared memory exit code 137 "
    with no_hang():
        read(line * 4000 + "\n" + (line + "\n") * 20_000)
