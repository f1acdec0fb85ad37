"""What to record so that the next profile has what this one lacks: a line for each, by its format.

Who recorded a profile is known by its events: PyTorch's ops are `aten::...`, JAX calls compiled
functions through `PjitFunction`, TensorFlow runs `ExecutorState::Process` and eager executions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from peakline.text import counted, time_text
from peakline.timing.launches.summary import launched_before_it
from peakline.trace.events import trace_of

if TYPE_CHECKING:
    from peakline.memory.peak.explained import AllocatorPeak
    from peakline.tables import Profile

_TORCH, _JAX, _TENSORFLOW = "PyTorch", "JAX", "TensorFlow"
_BY_PREFIX = {
    "aten::": _TORCH,
    "PjitFunction": _JAX,
    "ExecutorState::Process": _TENSORFLOW,
    "EagerExecute": _TENSORFLOW,
    "EagerLocalExecute": _TENSORFLOW,
    "FunctionRun": _TENSORFLOW,
}
_STEP = re.compile(r"(?:.*/)?torch/profiler/profiler\.py\(\d+\): step")
"""The frame of torch.profiler's `step()`, which `with_stack=True` records."""
_PYTHON = re.compile(r"\$.*\.py:\d+ .*|.*\.py\(\d+\): .*", re.DOTALL)
"""A call of Python: XLA's tracer writes `$file.py:3 f`, PyTorch's `file.py(3): f`."""
_MODULE = "nn.Module: "
_LITTLE = 0.01
_LAUNCH = re.compile(
    r"(?:cuda|cu|hip|hipExt|musa|mu)(?:Graph|Module)?Launch\w*"
    r"|(?:ur|pi)EnqueueKernelLaunch\w*|zeCommandList(?:Immediate)?AppendLaunch\w{0,40}Kernel\w*"
)
"""Launches of CUDA, HIP, MUSA, SYCL (Unified Runtime and before it PI) and Level Zero."""
_OF_CUDA = (
    "CUPTI needs the right to profile (the driver's NVreg_RestrictProfilingToAdminUsers=0, or "
    "root), no other profiler beside it, and within WSL a driver that supports it; and the device "
    "among activities="
)
_OF_OTHERS = "the profiler needs the device among activities=, and its vendor's tracing library"
_OF_ROCM = "the profiler needs the device among activities=, and the user /dev/kfd and /dev/dri"
_RUN, _PROVIDER, _PROVIDES = "model_run", "provider", "ExecutionProvider"
"""What ONNX Runtime calls a run of a model, and what in the stats of a node ran it."""
_MODULES = (
    "record with with_stack=True to see which module ran an op (with_modules=True does so for "
    "TorchScript only)"
)
_MARKS = {
    _TORCH: "mark them with the step() of torch.profiler and a schedule= (without one step() "
    "records none)",
    _JAX: "mark them with jax.profiler.StepTraceAnnotation",
    _TENSORFLOW: "mark them with tf.profiler.experimental.Trace(..., _r=1)",
    "": "mark them with jax.profiler.StepTraceAnnotation, tf.profiler.experimental.Trace(..., "
    "_r=1) or the step() of torch.profiler with a schedule=",
}
_EXPLAINS = {
    _TORCH: "with_stack=True of torch.profiler",
    _JAX: "python_tracer_level=1 and host_tracer_level=3 of jax.profiler.ProfileOptions",
    _TENSORFLOW: "python_tracer_level=1 and host_tracer_level=3 of "
    "tf.profiler.experimental.ProfilerOptions (TensorFlow 2.21 ignores both: mark what the host "
    "does with tf.profiler.experimental.Trace)",
}


def to_mark_steps(profile: Profile) -> str:
    """How to mark steps, which nothing in ``profile`` does."""
    names = _names(profile)
    if any(_STEP.fullmatch(name) for name in names):
        return (
            "the program calls step() of torch.profiler, which records steps only where profile() "
            "has a schedule="
        )
    return _MARKS[_recorder(names)]


def to_explain_time(profile: Profile) -> str:
    """What would show what the host does in times in which no event runs."""
    names = _names(profile)
    if any(_PYTHON.fullmatch(name) for name in names):
        return "where no event runs, Python calls nothing: sample the native stacks (perf)"
    how = _EXPLAINS.get(_recorder(names), "the Python tracer of the profiler")
    return f"record with {how} to see what the host does when no event runs"


def to_record_memory(profile: Profile) -> str:
    """How to record memory, of which ``profile`` has nothing; empty where that is not known."""
    names = _names(profile)
    recorder = _recorder(names)
    if recorder == _TORCH:
        return "PyTorch records memory with profile_memory=True"
    if recorder == _JAX:
        return (
            "JAX records memory on accelerators only; of the heap on a CPU save "
            "jax.profiler.save_device_memory_profile"
        )
    if recorder == _TENSORFLOW:
        return (
            "TensorFlow records memory on a CPU with TF_CPU_ALLOCATOR_USE_BFC=1; without it only "
            "where oneDNN is chosen, or TF_ENABLE_ONEDNN_OPTS=1 chooses it"
        )
    return ""


def to_count_memory(profile: Profile, peaks: Iterable[AllocatorPeak]) -> str:
    """What would count the memory from before a trace of PyTorch, which no record of a CPU has;
    empty for another profile, where parameters are at the peak, and where another allocator has
    more.

    The count of all bytes begins with the first recording (``c10/core/CPUAllocator.cpp``:
    ``ProfiledCPUMemoryReporter``); that of a GPU's allocator is its own.
    """
    most = max(peaks, key=lambda peak: peak.peak_bytes, default=None)
    if most is None or most.allocator != "CPU" or not _is_of_torch(profile):
        return ""
    if any(buffer.category == "parameter" for buffer in most.peak_buffers):
        return ""
    return (
        "what was allocated on the CPU before the recording is not counted, such as parameters: "
        "record from before the model is built, with schedule(wait=0, warmup=0, ...)"
    )


def to_place_memory(profile: Profile) -> str:
    """What would show whose buffers those of a trace of PyTorch are; empty for another profile, and
    where nothing is missing.
    """
    return _with_stack(profile, "see which module and line allocated a buffer")


def to_place_time(profile: Profile) -> str:
    """What would show whose time that of a trace of PyTorch is; else as `to_place_memory`."""
    return _with_stack(profile, "see which line of the program takes the time")


def to_place_ops(profile: Profile) -> tuple[str, ...]:
    """What would show where the ops of a trace of PyTorch run and on what; nothing for another
    profile, and where nothing is missing.
    """
    if not _is_of_torch(profile):
        return ()
    stats = profile.columns_or_empty("event_stats")
    shapes = "Input Dims" in stats.names("name").values
    missing = "" if shapes else "record with record_shapes=True to see which shapes an op ran on"
    modules = any(name.startswith(_MODULE) for name in _names(profile))
    other = "" if modules else _MODULES
    return tuple(filter(None, (missing, other)))


def to_place_functions(profile: Profile) -> str:
    """What would show which functions of the program take the time, none of which are recorded."""
    names = _names(profile)
    if any(_PYTHON.fullmatch(name) for name in names):
        return "all functions that were recorded are those of libraries, none is the program's own"
    if _is_of_torch(profile):
        return "record with with_stack=True to see which of your functions takes the time"
    how = _EXPLAINS.get(_recorder(names))
    if how is None:
        return "who recorded this profile records no functions of Python"
    return f"record with {how} to see which of your functions takes the time"


def launched_before(profile: Profile) -> str:
    """How to see whose the work is that devices did first and that was launched before the
    recording; empty where there is little of it.
    """
    count, work_ps, share = launched_before_it(profile)
    if share < _LITTLE:
        return ""
    return (
        f"of the first work of the devices {counted(count, 'kernel')} or copies "
        f"({time_text(work_ps)}) were launched before the recording, so that no op or step is "
        "known of them: wait for the device (torch.cuda.synchronize, block_until_ready) before it "
        "begins"
    )


def to_see_devices(profile: Profile) -> str:
    """What would show the work of a device of which only the launches are recorded; empty for
    another profile.
    """
    names = trace_of(profile).name.values
    calls = sorted(name for name in names if _LAUNCH.fullmatch(name))
    if (not calls and _RUN not in names) or profile.columns_or_empty("device_time").rows:
        return ""
    if calls:
        of = {"hip": _OF_ROCM, "cud": _OF_CUDA, "cuL": _OF_CUDA, "cuG": _OF_CUDA}
        how = of.get(calls[0][:3], _OF_OTHERS)
        return (
            f"the device's side is missing: launches ({calls[0]}) are recorded and no kernel or "
            f"copy; {how}"
        )
    stats = profile.columns_or_empty("event_stats")
    key = stats.names("name")
    provider = stats.names("value").take(key.codes == key.code_of(_PROVIDER))
    used = {provider.values[code] for code in set(provider.codes.tolist()) if code >= 0}
    others = sorted(one for one in used if one.endswith(_PROVIDES) and not one.startswith("CPU"))
    if not others:
        return ""
    return (
        f"a node's time with {others[0]} is the host's, which launches: record with Nsight Systems "
        "or rocprofv3 to see what the device does"
    )


def _with_stack(profile: Profile, why: str) -> str:
    if not _is_of_torch(profile) or any(_PYTHON.fullmatch(name) for name in _names(profile)):
        return ""
    return f"record with with_stack=True to {why}"


def _is_of_torch(profile: Profile) -> bool:
    """Whether PyTorch's own profiler wrote it: PyTorch/XLA is recorded by that of XLA."""
    return _TORCH in profile.event_rules.recorders and _recorder(_names(profile)) == _TORCH


def to_record_programs(profile: Profile) -> str:
    """How to record compiled programs, of which ``profile`` has none."""
    recorder = _recorder(_names(profile))
    if recorder == _TORCH:
        return "PyTorch has none: XLA compiles programs for PyTorch/XLA, JAX and TensorFlow"
    dump = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto' writes them to DIR"
    if recorder == _TENSORFLOW:
        return f"TensorFlow compiles functions with jit_compile=True; {dump}"
    return dump


def _names(profile: Profile) -> list[str]:
    """The names of the events, each once or more; none where the format has no events."""
    for table in ("event_types", "events"):
        if table in profile.tables:
            return list(profile.columns(table, frozenset(("name",))).names("name").values)
    return []


def _recorder(names: Iterable[str]) -> str:
    result = {
        recorder
        for name in names
        for prefix, recorder in _BY_PREFIX.items()
        if name.startswith(prefix)
    }
    # PyTorch/XLA and JAX run in TensorFlow's tracer too.
    return next((one for one in (_TORCH, _JAX, _TENSORFLOW) if one in result), "")
