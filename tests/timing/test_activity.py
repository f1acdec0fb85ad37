"""What devices and threads are doing: activity and classes of work."""

import json
from pathlib import Path

from tests.each_row import each_row
from tests.formats.step_stats_reference import add_device, add_node, run_metadata
from tests.reference.xspace_builder import SpaceBuilder
from tests.timing.traces import GPU, HOST_PLANE, TPU, profile_of

import peakline
from peakline.trace.activity import activity_of, named_activities
from peakline.trace.activity_names import (
    Activity,
    category_activity,
    device_activity,
    host_activity,
    kind_of_collective,
)
from peakline.trace.device_lines import devices_of
from peakline.trace.events import trace_of
from peakline.trace.work_classes import WORDS, Work, work_of

DATA = Path(__file__).parents[1] / "data"


def activities(profile):
    """The activity of every event, by name."""
    trace = trace_of(profile)
    return {
        name: Activity(code).name
        for name, code in zip(trace.name.to_list(), activity_of(profile).tolist(), strict=True)
    }


@each_row(
    ("name", "activity"),
    [
        ("train", "NOTHING"),
        ("train 170", "NOTHING"),
        ("ProfilerStep#12", "NOTHING"),
        ("ThreadpoolListener::StartRegion", "NOTHING"),
        ("MemoryAllocation", "NOTHING"),
        ("IteratorGetNextOp::DoCompute", "INPUT_WAIT"),
        ("data/IteratorGetNext:IteratorGetNext", "INPUT_WAIT"),
        ("fifo:QueueDequeueManyV2", "INPUT_WAIT"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "INPUT_WAIT"),
        ("torch/utils/data/dataloader.py(701): __next__", "INPUT_WAIT"),
        ("$iterator_ops.py:826 __next__", "INPUT_WAIT"),
        ("Iterator::Root::Prefetch::BatchV2", "INPUT_WORK"),
        ("InstantiatedCapturedFunction::Run", "INPUT_WORK"),
        ("PrefetchProduce", "INPUT_WORK"),
        ("backend_compile_and_load", "COMPILE"),
        ("PjRtCpuClient::Compile", "COMPILE"),
        ("trace_to_jaxpr_dynamic", "COMPILE"),
        ("tf.function-graph_building", "COMPILE"),
        ("XLA::TPU run hlo passes", "COMPILE"),
        ("PjitFunction(f)", "LAUNCH"),
        ("PjRtStreamExecutorLoadedExecutable::Execute", "LAUNCH"),
        ("FunctionRun", "LAUNCH"),
        ("cudaLaunchKernel", "LAUNCH"),
        ("hipExtModuleLaunchKernel", "LAUNCH"),
        ("cuMemcpyHtoDAsync_v2", "LAUNCH"),
        ("hipModuleLoadData", "COMPILE"),
        ("cudaDeviceSynchronize", "WAIT"),
        ("$api.py:2479 block_until_ready", "WAIT"),
        ("ThunkExecutor::Execute (wait for completion)", "WAIT"),
        ("Wait for LaunchOnDevice completion", "WAIT"),
        ("EagerLocalExecute: __inference_step_92", "WAIT"),
        ("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", "WAIT"),
        ("<built-in function sleep>", "WAIT"),
        ("$time sleep", "WAIT"),
        ("Wait: pending_threads=1/2", "COMMUNICATION"),
        ("Rendezvous", "COMMUNICATION"),
        ("RecvTensor", "COMMUNICATION"),
        ("CollectiveReduceV2:CollectiveReduceV2", "COMMUNICATION"),
        ("all-reduce.1", "COMMUNICATION"),
        ("psum.7", "COMMUNICATION"),
        ("gloo:all_reduce", "COMMUNICATION"),
        ("model/head/MatMul:MatMul", "HOST_OP"),
        ("ParallelFor", "HOST_OP"),
        ("aten::conv2d", "HOST_OP"),
        ("ReluBackward1", "HOST_OP"),
        ("EagerLocalExecute: MatMul", "HOST"),
        ("ExecutorState::Process", "HOST"),
        ("$train.py:12 step", "HOST"),
        ("send", "HOST"),
        ("send_email:x", "HOST"),
    ],
)
def test_names_of_a_host(name, activity):
    assert host_activity(name).name == activity


@each_row(
    ("name", "activity"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, ...>", "COMPUTE"),
        ("CatArrayBatchedCopy_aligned16_contig", "COMPUTE"),
        ("copy_fusion", "COMPUTE"),
        ("Memset (Device)", "COMPUTE"),
        ("loop_broadcast_fusion", "COMPUTE"),
        ("%copy.3 = f32[8]{0} copy(f32[8]{0} %x)", "COMPUTE"),
        ("%while.4 = (s32[]) while((s32[]) %t)", "COMPUTE"),
        ("MemcpyH2D", "HOST_TO_DEVICE"),
        ("Memcpy HtoD (Pageable -> Device)", "HOST_TO_DEVICE"),
        ("Memcpy DtoH (Device -> Pinned)", "DEVICE_TO_HOST"),
        ("MEMCPYDtoH", "DEVICE_TO_HOST"),
        ("Memcpy DtoD (Device -> Device)", "DEVICE_TO_DEVICE"),
        ("MemcpyP2P", "DEVICE_TO_DEVICE"),
        ("__amd_rocclr_copyBuffer.kd", "DEVICE_TO_DEVICE"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "COMMUNICATION"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "COMMUNICATION"),
        ("void vllm::cross_device_reduce_1stage<half, 8>(...)", "COMMUNICATION"),
        ("%all-gather-start.1 = (f32[8]{0}, f32[32]{0}) all-gather-start(...)", "COMMUNICATION"),
        ("all-reduce-done.3", "COMMUNICATION"),
        ("barrier-cores", "COMMUNICATION"),
        ("%infeed.1 = ((f32[8]{0}), token[]) infeed(token[] %t)", "INPUT_WAIT"),
        ("%outfeed.1 = token[] outfeed(f32[8]{0} %x, token[] %t)", "DEVICE_TO_HOST"),
        ("ProfilerStep#3", "NOTHING"),
    ],
)
def test_names_of_a_device(name, activity):
    assert device_activity(name).name == activity


HOSTED = "{0:T(8)S(5)}"


@each_row(
    ("category", "name", "activity"),
    [
        ("loop fusion", "%fusion.1", "COMPUTE"),
        ("all-reduce", "%ar", "COMMUNICATION"),
        ("all-reduce fusion", "%ar", "COMMUNICATION"),
        ("reduce-scatter", "%rs", "COMMUNICATION"),
        ("broadcast", "%broadcast.2", "COMPUTE"),
        ("send-done", "%s", "COMMUNICATION"),
        ("host send", "%s", "DEVICE_TO_HOST"),
        ("host recv-done", "%r", "HOST_TO_DEVICE"),
        ("infeed", "%i", "INPUT_WAIT"),
        ("copy", "%copy", "COMPUTE"),
        (
            "copy-start",
            "%c = (f32[8]{0}, f32[8]{0:S(1)}, u32[]) copy-start(...)",
            "DEVICE_TO_DEVICE",
        ),
        (
            "copy-start",
            f"%c = (f32[8]{{0}}, f32[8]{HOSTED}, u32[]) copy-start(..)",
            "HOST_TO_DEVICE",
        ),
        (
            "copy-start",
            f"%c = (f32[8]{HOSTED}, f32[8]{{0}}, u32[]) copy-start(..)",
            "DEVICE_TO_HOST",
        ),
        (
            "copy-done",
            f"%c = f32[8]{{0}} copy-done((f32[8]{{0}}, f32[8]{HOSTED}, u32[]) %s)",
            "HOST_TO_DEVICE",
        ),
        (
            "copy-done",
            f"%c = f32[8]{HOSTED} copy-done((f32[8]{HOSTED}, f32[8]{{0}}, u32[]) %s)",
            "DEVICE_TO_HOST",
        ),
    ],
)
def test_categories_of_a_tpu(category, name, activity):
    assert category_activity(category, name).name == activity


@each_row(
    ("name", "kind"),
    [
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce-scatter"),
        ("ncclDevKernel_SendRecv", "send-recv"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("ncclDevKernel_Generic", "collective"),
        ("hccl::allgather", "all-gather"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "reduce"),
        ("gloo:monitoredBarrier", "barrier"),
        ("gloo:recvAnySource", "recv"),
        ("gloo:scatter", "scatter"),
        ("send.3", "send"),
        ("all-to-all.4", "all-to-all"),
        ("ppermute.1", "collective-permute"),
        ("gloo:all_gather", "all-gather"),
        ("c:CollectiveGatherV2", "all-gather"),
        ("RecvTensor", "recv"),
        ("CollectiveReduceV2_1/_6:_Send", "send"),
        ("barrier-cores", "barrier"),
        ("reduce.3", None),
        ("Rendezvous", None),
    ],
)
def test_kinds_of_collectives(name, kind):
    assert kind_of_collective(name) == kind


class TestLines:
    def test_a_thread_of_a_pipeline_works_for_it_whatever_it_does(self):
        host = {"tf_data_private_threadpool/3": [("PyFunc:PyFunc", 0, 5)]}
        assert activities(profile_of({HOST_PLANE: host})) == {"PyFunc:PyFunc": "INPUT_WORK"}

    def test_a_compiled_function_waits_for_input_on_a_thread_of_the_pipeline(self):
        wait, stage = "IteratorGetNextOp::DoCompute", "Iterator::Root::Prefetch"
        events = [(wait, 0, 50), (stage, 5, 45)]
        host = {"tf_data_iterator_get_next/4": events}
        result = activities(profile_of({HOST_PLANE: host}))
        assert result == {wait: "INPUT_WAIT", stage: "INPUT_WORK"}
        host = {"tf_data_iterator_resource/4": events}
        result = activities(profile_of({HOST_PLANE: host}))
        assert set(result.values()) == {"INPUT_WORK"}

    def test_a_compiler_thread_compiles(self):
        host = {"tf_PjRtCompilerThreadPool/3": [("algsimp", 0, 5)]}
        assert activities(profile_of({HOST_PLANE: host})) == {"algsimp": "COMPILE"}

    def test_what_a_thread_of_xla_runs_are_ops(self):
        host = {"tf_XLAEigen/3": [("ynn_fusion.2", 0, 5)], "python": [("ynn_fusion", 0, 5)]}
        result = activities(profile_of({HOST_PLANE: host}))
        assert result == {"ynn_fusion.2": "HOST_OP", "ynn_fusion": "HOST"}

    def test_a_program_that_its_caller_runs_is_known_by_its_ops(self):
        host = {"python": [("ThunkExecutor::Execute", 0, 9), ("dot.3", 1, 5), ("psum.1", 5, 9)]}
        stats = [(1, "hlo_op", "dot.3"), (2, "hlo_op", "psum.1")]
        result = activities(profile_of({HOST_PLANE: host}, stats=stats))
        assert (result["dot.3"], result["psum.1"]) == ("HOST_OP", "COMMUNICATION")

    def test_a_copy_of_rocm_has_the_direction_of_its_call(self):
        planes = {
            GPU: {"Stream #17(Kernel)": [("__amd_rocclr_copyBuffer.kd", 10, 15)]},
            HOST_PLANE: {"Host Threads/1": [("hipMemcpyHtoDAsync", 0, 5)]},
        }
        stats = [(0, "correlation_id", 7), (1, "correlation_id", 7)]
        result = activities(profile_of(planes, stats=stats))
        assert result["__amd_rocclr_copyBuffer.kd"] == "HOST_TO_DEVICE"

    def test_derived_lines_and_annotations_are_nothing(self):
        planes = {GPU: {
            "Stream #1": [("kernel", 0, 5)], "XLA Modules": [("jit_f", 0, 9)],
            "XLA Ops": [("fusion", 0, 9)], "Launch Stats": [("x", 0, 9)],
        }}  # fmt: skip
        assert activities(profile_of(planes)) == {
            "kernel": "COMPUTE", "jit_f": "NOTHING", "fusion": "NOTHING", "x": "NOTHING",
        }  # fmt: skip

    def test_a_gpu_that_only_tells_ops_is_told_by_them(self):
        profile = profile_of({GPU: {"XLA Ops": [("fusion", 0, 9)]}})
        assert activities(profile) == {"fusion": "COMPUTE"}

    def test_a_tpu_is_told_by_its_ops_and_barriers_alone(self):
        profile = profile_of({TPU: {
            "Steps": [("0", 0, 9)], "XLA Modules": [("jit_f", 0, 9)], "XLA Ops": [("fusion", 0, 9)],
            "XLA TraceMe": [("barrier-cores", 0, 2)], "Scalar Unit": [("y", 0, 9)],
        }})  # fmt: skip
        assert [len(device.lines) for device in devices_of(profile)] == [2]
        assert activities(profile) == {
            "0": "NOTHING", "jit_f": "NOTHING", "fusion": "COMPUTE", "y": "NOTHING",
            "barrier-cores": "COMMUNICATION",
        }  # fmt: skip


def test_the_category_of_a_tpu_s_op_beats_its_name(opened):
    space = SpaceBuilder()
    plane = space.plane(TPU)
    plane.line("XLA Ops", 1).event("%custom.1 = x", 0, 10).event("%fusion.1 = x", 10, 10)
    kind = plane.message.event_metadata[plane.event_id("%custom.1 = x")]
    plane.add_stats(kind, {"hlo_category": "all-gather"})
    profile = opened(space)
    assert activities(profile) == {"%custom.1 = x": "COMMUNICATION", "%fusion.1 = x": "COMPUTE"}


def test_categories_of_pytorch():
    planes = {
        "python (GPU 0)": {"stream 7": [
            ("gemm", 0, 5, None, "kernel"), ("Context Sync", 5, 9, None, "cuda_sync"),
            ("nccl:all_reduce", 0, 5, None, "gpu_user_annotation"),
            ("Memcpy DtoH (Device -> Pinned)", 6, 8, None, "gpu_memcpy"),
        ]},
        "python (CPU)": {"thread 1": [
            ("my stretch", 0, 9, None, "user_annotation"), ("my_op", 0, 5, None, "cpu_op"),
            ("enumerate(DataLoader)#X.__next__", 5, 6, None, "user_annotation"),
            ("cudaMalloc", 6, 7, None, "cuda_runtime"), ("train.py(3): step", 0, 9, None,
                                                         "python_function"),
        ]},
    }  # fmt: skip
    assert activities(profile_of(planes, kind="chrome_trace")) == {
        "gemm": "COMPUTE", "Context Sync": "NOTHING", "nccl:all_reduce": "NOTHING",
        "Memcpy DtoH (Device -> Pinned)": "DEVICE_TO_HOST", "my stretch": "NOTHING",
        "my_op": "HOST_OP", "enumerate(DataLoader)#X.__next__": "INPUT_WAIT",
        "cudaMalloc": "HOST", "train.py(3): step": "HOST",
    }  # fmt: skip


def test_what_waits_for_another_stream_of_an_mtia_is_no_work(opened):
    at = {"ph": "X", "cat": "mtia_ccp_events", "pid": 17, "tid": 1}
    events = [
        {**at, "name": "merge", "ts": 1, "dur": 2, "args": {"stream": 105}},
        {**at, "name": "event_wait", "ts": 5, "dur": 9,
         "args": {"stream": 105, "wait_on_stream": 104}},
    ]  # fmt: skip
    text = json.dumps({"schemaVersion": 1, "traceEvents": events})
    profile = opened(text.encode(), "one.pt.trace.json")
    assert activities(profile) == {"merge": "COMPUTE", "event_wait": "NOTHING"}
    assert profile.columns("op_stats").names("op").values == ["merge"]


class TestStepStats:
    def test_streams_and_copies_are_of_one_device_and_its_executor_launches(self, tmp_path):
        run = run_metadata()
        cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
        add_node(add_device(run, cpu), "m", 10, label="m = MatMul(x)")
        add_node(add_device(run, cpu), "RecvTensor", 10, label="[8B] w = Mul(x)")
        add_node(add_device(run, cpu.replace("CPU", "GPU")), "g", 10, label="g = MatMul(x)")
        add_node(add_device(run, "/device:GPU:0/stream:1"), "gk", 10, label="grid 1 @@g:MatMul#")
        add_node(add_device(run, "/device:GPU:0/stream:2<MemcpyH2D>"), "c", 10, label="x")
        add_node(add_device(run, "/device:GPU:0/memcpy"), "d", 10, label="MEMCPYDtoH 8 bytes")
        add_node(add_device(run, "/device:GPU:0/sync"), "s", 10, label="ThreadId 3")
        path = tmp_path / "run.pb"
        path.write_bytes(run.SerializeToString())
        with peakline.open(path) as profile:
            assert activities(profile) == {
                "m": "HOST_OP", "RecvTensor": "COMMUNICATION", "g": "LAUNCH", "gk": "COMPUTE",
                "c": "HOST_TO_DEVICE", "d": "DEVICE_TO_HOST", "s": "WAIT",
            }  # fmt: skip
            assert [device.name for device in devices_of(profile)] == ["/device:GPU:0"]

    def test_a_device_without_streams_is_told_by_its_executor(self, tmp_path):
        run = run_metadata()
        add_node(add_device(run, "/device:GPU:0"), "g", 10, label="g = MatMul(x)")
        path = tmp_path / "run.pb"
        path.write_bytes(run.SerializeToString())
        with peakline.open(path) as profile:
            assert activities(profile) == {"g": "COMPUTE"}


@each_row(
    ("name", "activity"),
    [
        ("LSRAv25", "COMPILE"),
        ("LSRAv35", "HOST"),
        ("all-reduce.1234", "COMMUNICATION"),
        ("all-reduce.1234x", "HOST"),
        ("MulBackward12", "HOST_OP"),
        ("MulBackward123x", "HOST"),
        ("x" * 300 + ":MatMul12", "HOST_OP"),
    ],
)
def test_names_with_long_numbers(name, activity):
    assert host_activity(name).name == activity


def test_every_event_of_a_real_trace_is_known():
    (path,) = (DATA / "sessions/tf2_cnn").rglob("*.xplane.pb.gz")
    with peakline.open(path) as profile:
        result = activities(profile)
        assert activity_of(profile).size == trace_of(profile).size
    ops = {name for name, activity in result.items() if activity == "HOST_OP"}
    assert all(":" in name or name == "ParallelFor" for name in ops)
    assert len(ops) > 50


def test_names_alone_tell_what_the_events_of_a_host_do():
    (path,) = (DATA / "sessions/tf2_cnn").rglob("*.xplane.pb.gz")
    with peakline.open(path) as profile:
        trace, of_line = trace_of(profile), named_activities(profile)
        lines = list(trace.lines_on("host"))
        assert len(lines) > 3
        for line in lines:
            result = of_line(line)[trace.name.codes[line.events]]
            assert (result == activity_of(profile)[line.events]).all()


def test_names_alone_do_not_tell_what_xla_runs_on_a_cpu():
    host = {"python": [("ThunkExecutor::Execute", 0, 9), ("dot.3", 1, 5)]}
    assert named_activities(profile_of({HOST_PLANE: host})) is None


@each_row(
    ("name", "op_type", "work"),
    [
        ("x/sorting", "TopKV2", Work.SORT),
        ("aten::argsort", "", Work.SORT),
        ("aten::sort", "", Work.SORT),
        ("sort.5", "", Work.SORT),
        ("a", "AsString", Work.STRING),
        ("a", "PrintV2", Work.PRINT),
        ("a", "EagerPyFunc", Work.CALLBACK),
        ("pure_callback.3", "", Work.CALLBACK),
        ("aten::_to_copy", "", Work.CAST),
        ("convert.12", "", Work.CAST),
        ("a", "convert_element_type", Work.CAST),
        ("transpose.1.clone", "", Work.LAYOUT),
        ("aten::clone", "", Work.LAYOUT),
        ("aten::index_put_", "", Work.GATHER),
        ("a", "scatter-add", Work.GATHER),
        ("aten::mul_", "", Work.ELEMENTWISE),
        ("a", "AddV2", Work.ELEMENTWISE),
        ("aten::addmm", "", Work.MATMUL),
        ("dot.7", "", Work.MATMUL),
        ("aten::randperm", "", Work.RANDOM),
        ("a", "SaveV2", Work.FILE),
        ("a/spectral_norm/Svd", "Svd", Work.LINALG),
        ("a", "MatrixInverse", Work.LINALG),
        ("aten::linalg_eigh", "", Work.LINALG),
        ("aten::_linalg_solve_ex", "", Work.LINALG),
        ("svd.278", "", Work.LINALG),
        ("jit(f)/jit(inv)/lu", "lu", Work.LINALG),
        ("a", "lapack_sgesdd_ffi", Work.LINALG),
        ("cusolver_syevd_ffi.3", "", Work.LINALG),
        ("a", "Cholesky", Work.SOLVE),
        ("triangular-solve.2", "", Work.SOLVE),
        ("a", "lapack_spotrf_ffi", Work.SOLVE),
        ("blas_strsm", "", Work.SOLVE),
        ("aten::cat", "", Work.JOIN),
        ("a", "ConcatV2", Work.JOIN),
        ("wrapped_concatenate", "", Work.JOIN),
        ("copy_concatenate_fusion.2", "", Work.JOIN),
        ("pad.7", "", Work.JOIN),
        ("aten::linalg_vector_norm", "", Work.REDUCE),
        # Calls others, which say what it does.
        ("aten::linalg_matrix_norm", "", Work.OTHER),
        ("sample/RandomShuffle", "RandomShuffle", Work.RANDOM),
        ("a", "ArgMax", Work.REDUCE),
        ("aten::cumsum", "", Work.SCAN),
        ("a", "ResizeBilinearGrad", Work.RESIZE),
        ("aten::grid_sampler_2d", "", Work.RESIZE),
        ("aten::_fft_r2c", "", Work.FFT),
        ("fft.3", "", Work.FFT),
        ("Sigmoid/DebugNumericSummaryV2", "DebugNumericSummaryV2", Work.CHECK),
        ("a", "MatrixDiagV3", Work.OTHER),
        ("blas_sgemm", "", Work.OTHER),
        # A fusion is named for the last of what is in it: only what moves or converts says so.
        ("wrapped_transpose", "", Work.LAYOUT),
        ("copy_transpose_fusion.2", "", Work.LAYOUT),
        ("gather_add_fusion", "", Work.GATHER),
        ("add_convert_fusion", "", Work.OTHER),
        # A type that is not known says that it is none of these, whatever the name is.
        ("sort", "MyOwnOp", Work.OTHER),
        ("ProfilerStep::sort", "", Work.OTHER),
        ("sort(train.py)", "", Work.OTHER),
        ("", "", Work.OTHER),
    ],
)
def test_the_kind_of_work(name, op_type, work):
    assert work_of(name, op_type) == work


def test_every_kind_has_words():
    assert set(WORDS) == set(Work) - {Work.OTHER}
