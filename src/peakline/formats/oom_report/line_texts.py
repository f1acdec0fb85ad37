"""Failures that one line reports: drivers, libraries, other frameworks, schedulers, containers.

Each shape is a row: a word that its lines have, the pattern, the allocator, and what failed. Sizes
are the pattern's named groups. Sources: cuBLAS, cuDNN, NCCL and CUDA name their own status codes;
``cupy/cuda/memory.pyx``, ``onnxruntime/core/framework/bfc_arena.cc``, ``slurmstepd``'s and
``kubelet``'s messages, ``python/ray/exceptions.py``, ``torch/utils/data/_utils``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakline.formats.oom_report.report import SIZE, Report, Reports, parse_size

_N = r"[\d,]{1,26}"
_WEAK = ("refused once", "library", "host_memory", "killed")
"""Kinds that are worth a word only where nothing else is reported, the better ones first."""
_MESSAGE = 300
_SAME_NS = 10**10


@dataclass(frozen=True, slots=True)
class _Shape:
    word: str
    pattern: re.Pattern[str]
    allocator: str
    kind: str | None


def _shape(word: str, pattern: str, allocator: str, kind: str | None = None) -> _Shape:
    return _Shape(word, re.compile(pattern), allocator, kind)


_SHAPES = (
    # What allocators of other frameworks say, with numbers.
    _shape(
        "Out of memory allocating",
        rf"Out of memory allocating (?P<requested>{_N}) bytes"
        rf" \(allocated so far: (?P<in_use>{_N}) bytes"
        rf"(?:, limit set to: (?P<limit>{_N}) bytes)?\)",
        "cupy",
    ),
    _shape(
        "out of memory to allocate",
        rf"out of memory to allocate (?P<requested>{_N}) bytes \(total (?P<pool>{_N}) bytes",
        "cupy",
        "driver",
    ),
    _shape(
        "Out of memory error on",
        rf"Out of memory error on (?P<device>GPU \d{{1,4}})\. Cannot allocate (?P<requested>{SIZE})"
        rf"(?:[^.]{{0,40}}?, (?P<in_use>{SIZE}) memory has been allocated and|[^.]{{0,40}}?,)? ?"
        rf"available memory is (?:only )?(?P<device_free>{SIZE})",
        "paddle",
    ),
    _shape(
        "requested buffer of size",
        rf"Failed to allocate memory for requested buffer of size (?P<requested>{_N})",
        "onnxruntime",
        "driver",
    ),
    _shape(
        "is smaller than requested bytes",
        rf"Available memory of (?P<device_free>{_N}) is smaller than requested bytes of "
        rf"(?P<requested>{_N})",
        "onnxruntime",
    ),
    _shape(
        "amount of GPU memory",
        rf"Requested amount of GPU memory \((?P<requested>{_N}) bytes\) could not be allocated",
        "tensorrt",
        "driver",
    ),
    _shape(
        "Allocation failed for size::",
        rf"Allocation failed for size::(?P<requested>{_N})",
        "hpu",
        "driver",
    ),
    _shape(
        "memory isn't enough",
        r"memory isn't enough and alloc failed, kernel name: (?P<op>[^,]{1,200}), "
        rf"alloc size: (?P<requested>{_N})B",
        "mindspore",
        "driver",
    ),
    _shape(
        "maximum allowed buffer size",
        rf"Attempting to allocate (?P<requested>{_N}) bytes which is greater than the maximum "
        rf"allowed buffer size of (?P<limit>{_N}) bytes",
        "metal",
    ),
    _shape(
        "Maximum pool size exceeded",
        rf"Maximum pool size exceeded(?: \(failed to allocate (?P<requested>{SIZE})\))?",
        "rmm",
        "driver",
    ),
    # The communicator, and libraries that need a workspace.
    _shape(
        "to CUDA ",
        rf"Failed to CUDA (?:host )?(?:calloc|alloc|malloc)(?: async)? (?P<requested>{_N}) bytes",
        "nccl",
        "library",
    ),
    _shape("Cuda failure", r"Cuda failure (?:\d{1,4} )?'out of memory'", "nccl", "library"),
    _shape(
        "CUBLAS_STATUS_",
        r"CUBLAS_STATUS_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED.{0,40}?cublasCreate",
        "cublas",
        "library",
    ),
    _shape(
        "CUDNN_STATUS_",
        r"CUDNN_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_\w{0,60}?ALLOCATION_FAILED"
        r"|create cudnn handle: CUDNN_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)",
        "cudnn",
        "library",
    ),
    # The driver. TensorFlow and XLA ask again for a tenth less.
    _shape(
        "from device: ",
        rf"failed to allocate (?P<requested>{SIZE})(?: \((?P<exact>{_N}) bytes\))? from device: "
        r"(?:CUDA_ERROR_OUT_OF_MEMORY|HIP_ERROR_OutOfMemory)", "", "driver",
    ),
    _shape(
        "out of memory",
        r"\b(?:CUDA|HIP)(?: (?:driver|runtime))? error(?:: | ?\(2\), )out of memory",
        "cuda",
        "driver",
    ),
    _shape("out of memory", r"cuda runtime error \(2\) : out of memory", "cuda", "driver"),
    _shape("out of memory", r"cudaMalloc retry failed: out of memory", "cuda", "driver"),
    _shape("out_of_memory", r"bad_alloc: out_of_memory", "rmm", "driver"),
    _shape(
        "OutOfMemory",
        r"\b(?:hipErrorOutOfMemory|kIOGPUCommandBufferCallbackErrorOutOfMemory"
        r"|Error Code 2: OutOfMemory|ErrorOutOfDeviceMemory)\b",
        "device",
        "driver",
    ),
    _shape(
        "failed to allocate memory",
        r"ResourceExhausted.{0,400}?failed to allocate memory(?: \[Op:(?P<op>\w{1,80})\])?",
        "",
        "driver",
    ),
    _shape("Dst tensor", r"Dst tensor is not initialized", "", "library"),
    _shape("cudaErrorMemoryAllocation", r"cudaErrorMemoryAllocation", "cuda", "driver"),
    _shape(
        "_OUT_OF_MEMORY", r"(?:cuMemAlloc|cuMemCreate|Call to \w{1,40}|CUresult).{0,80}?"
        r"CUDA_ERROR_OUT_OF_MEMORY", "cuda", "driver",
    ),
    # The host.
    _shape(
        "for an array with shape",
        rf"Unable to allocate (?P<requested>{SIZE}) for an array with shape "
        r"(?P<shape>\([\d, ]{0,200}\)) and data type (?P<data_type>\S{1,40})",
        "host",
        "host_memory",
    ),
    _shape(
        "more system memory",
        rf"requires more system memory \((?P<requested>{SIZE})\) than is available "
        rf"\((?P<device_free>{SIZE})\)",
        "host",
        "host_memory",
    ),
    _shape("Errno 12]", r"\[Errno 12\] Cannot allocate memory", "host", "host_memory"),
    _shape("paging file", r"paging file is too small", "host", "host_memory"),
    _shape("bad_alloc", r"std::bad_alloc\b(?!: out_of)", "host", "host_memory"),
    _shape("shared memory", r"workers? (?:are|is) out of shared memory", "shm", "shared_memory"),
    _shape("insufficient shared memory", r"insufficient shared memory", "shm", "shared_memory"),
    _shape(
        "shared memory object", r"unable to \w+ shared memory object .{0,200}?No space left",
        "shm", "shared_memory",
    ),
    _shape(
        "is killed by signal: Bus",
        r"DataLoader worker \(pid (?P<op>\d+)\) is killed by signal: Bus",
        "shm", "shared_memory",
    ),
    _shape(
        "is killed by signal: Killed",
        r"DataLoader worker \(pid (?P<op>\d+)\) is killed by signal: Killed",
        "host", "killed",
    ),
    # Schedulers and containers. Docker writes OOMKilled of what was not killed too.
    _shape(
        "OOMKill",
        r"(?:[Rr]eason\"?: *\"?OOMKilled\b|\"OOMKilled\": *true|\bOOMKilling\b|OOMKilled +\d)",
        "container", "host_limit",
    ),
    _shape(
        "node was low on resource", r"node was low on resource: memory", "node", "host_full"
    ),
    _shape(
        "oom", r"Detected \d{1,9} oom[-_ ]kill event(?:\(s\)|s)?(?: in)? "
        r"(?:StepId|[Ss]tep)[= ](?P<op>[\w.+]{1,60}?)[.,]?(?: |$)", "slurm", "host_limit",
    ),
    _shape("Out Of Memory", r"\btask \d{1,9}: Out Of Memory", "slurm", "host_limit"),
    _shape(
        "OUT_OF_ME", r"State[=: ]{1,4}OUT_OF_MEMORY|\bOUT_OF_ME(?:MORY|\+) {1,20}\d{1,3}:\d{1,3}\b",
        "slurm", "host_limit",
    ),
    _shape(
        "memory limit",
        r"(?:[Ss]tep|[Jj]ob) \S{1,40} exceeded memory limit \((?P<in_use_kb>\d{1,18}) > "
        r"(?P<limit_kb>\d{1,18})\), being killed", "slurm", "host_limit",
    ),
    _shape("memory limit", r"Exceeded (?:job|step) memory limit", "slurm", "host_limit"),
    _shape(
        "exceeded limit", r"job killed: v?mem (?P<in_use_kb>\d{1,18})kb exceeded limit "
        r"(?P<limit_kb>\d{1,18})kb", "pbs", "host_limit",
    ),
    _shape("TERM_MEMLIMIT", r"TERM_MEMLIMIT", "lsf", "host_limit"),
    _shape(
        "Memory on the node",
        rf"Memory on the node .{{0,300}}? was (?P<in_use>{SIZE}) ?/ ?(?P<limit>{SIZE}) .{{0,60}}?"
        "exceeds the memory usage threshold", "ray node", "host_full",
    ),
    _shape(
        "running low on memory", r"node (?:was )?running low on memory", "ray node", "host_full"
    ),
    _shape("oom-kill'", r"Failed with result 'oom-kill'", "unit", "host_limit"),
    _shape("OOM killer", r"has been killed by the OOM killer", "unit", "host_limit"),
    _shape("oom_kill ", r"^oom_kill [1-9]\d{0,9}\s*$", "cgroup", "host_limit"),
    # Nothing of these says why.
    _shape(
        "137", r"(?i)\bexit(?:ed)?(?: with)?[ _]?"
        r"(?:code|status)?\"?[:= ]{1,12}137\b", "host", "killed"
    ),
    _shape("SIGKILL", r"Signal 9 \(SIGKILL\) received by PID (?P<op>\d+)", "host", "killed"),
    _shape("-9", r"(?i)\b(?:exit|return) ?code\"?[:= ]{1,4}-9\b", "host", "killed"),
    _shape(" Killed ", r"\b(?P<op>\d{1,9}) Killed {2,}\S", "host", "killed"),
)  # fmt: skip

ANNOUNCING = (
    b"Out of memory error on", b"requested buffer of size", b"is smaller than requested",
    b"Requested amount of GPU memory", b"Allocation failed for size", b"memory isn't enough",
    b"maximum allowed buffer size", b"Maximum pool size exceeded", b"Failed to CUDA ",
    b"CUBLAS_STATUS_", b"CUDNN_STATUS_", b"out_of_memory", b"OutOfMemory", b"OutOfDeviceMemory",
    b"ResourceExhausted",
    b"Dst tensor is not init",
    b"cudaErrorMemoryAllocation", b"_OUT_OF_MEMORY", b"for an array with shape",
    b"requires more system memory", b"Cannot allocate memory", b"paging file is too",
    b"std::bad_alloc", b" shared memory", b"killed by signal", b"OOMKilled", b"OOMKilling",
    b"low on resource: memory", b"oom-kill event", b"oom_kill event", b"oom kill event",
    b"Out Of Memory", b"OUT_OF_ME", b" memory limit", b"TERM_MEMLIMIT", b" exceeded limit ",
    b"Memory on the node", b"running low on memory", b"'oom-kill'", b"by the OOM killer",
    b"oom_kill ", b"Code: 137", b"Exit Code:  ", b"code: 137", b'Code": 137', b" code 137",
    b"_code=137", b"tatus 137",
    b"(SIGKILL) received", b"itcode: -9", b"code  : -9", b"rn code -9", b"rncode -9",
    b"d Killed  ", b"0 Killed  ", b"1 Killed  ", b"2 Killed  ", b"3 Killed  ", b"4 Killed  ",
    b"5 Killed  ", b"6 Killed  ", b"7 Killed  ", b"8 Killed  ", b"9 Killed  ",
)  # fmt: skip


class LineTexts:
    """Reads lines of `_SHAPES` into reports, each but once."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._known: dict[tuple[object, ...], Report] = {}
        self._weak: dict[Report, str] = {}
        self.mention = ""
        """The first line that speaks of memory that ran out and is of no known shape."""

    def line(self, line: str, time_ns: int | None) -> bool:
        """Read one line; False when it is of none of the shapes."""
        for shape in _SHAPES:
            if shape.word in line and (match := shape.pattern.search(line)):
                self._add(shape, match, line, time_ns)
                return True
        return False

    def mentions(self, line: str) -> None:
        """A line that no reader knows."""
        if not self.mention and "ut of memory" in line and "not a failure" not in line:
            # An allocator's caller can do with less.
            self.mention = line.strip()[:_MESSAGE]

    def finish(self) -> None:
        """A process that was killed is worth a word only where nothing says why, a library or the
        host without memory only where nothing ran out before it.
        """
        weak = {report: kind for report, kind in self._weak.items() if report.kind is not None}
        best = min(weak, key=lambda report: _WEAK.index(weak[report]), default=None)
        strong = any(report not in weak for report in self._reports.all)
        for report in weak:
            if strong or report is not best:
                self._reports.remove(report)

    def _add(self, shape: _Shape, match: re.Match[str], line: str, time_ns: int | None) -> None:
        groups = {name: text for name, text in match.groupdict().items() if text}
        key = (shape.allocator, shape.kind, *sorted(groups.items()))
        if self._is_repeated(key, time_ns):
            return
        report = self._known[key] = self._reports.new(shape.allocator, time_ns)
        report.kind = shape.kind
        report.message = line.strip()[:_MESSAGE]
        report.began = report.ended = True
        for name, text in groups.items():
            _put(report, name, text)
        if shape.word == "from device: ":
            self._weak[report] = "refused once"
        elif shape.kind in {"killed", "library"} or shape.word == "bad_alloc":
            self._weak[report] = shape.kind or ""

    def _is_repeated(self, key: tuple[object, ...], time_ns: int | None) -> bool:
        known = self._known.get(key)
        if known is None:
            return False
        if time_ns is None or known.time_ns is None:
            return True
        return time_ns - known.time_ns <= _SAME_NS


def _put(report: Report, name: str, text: str) -> None:
    if name == "exact":
        report.requested = parse_size(text.replace(",", ""))
    elif name in {"op", "shape", "data_type", "device"}:
        setattr(report, name, text)
    elif name.endswith("_kb"):
        setattr(report, name.removesuffix("_kb"), int(text) << 10)
    else:
        setattr(report, name, parse_size(text.replace(",", "")))
