"""PyTorch's failures, reported in one message: CUDA, HIP, XPU, MPS, NPU, MUSA, others, the CPU.

Every part is looked for by itself, since each may be missing. Sources:
``CUDACachingAllocator.cpp`` and ``CUDAMallocAsyncAllocator.cpp`` in ``c10/cuda``,
``c10/xpu/XPUCachingAllocator.cpp``, ``aten/src/ATen/mps/MPSAllocator.mm`` and
``c10/core/impl/alloc_cpu.cpp`` in pytorch/pytorch.
"""

from __future__ import annotations

import re

from peakline.formats.oom_report.report import ABSENT, SIZE, Report, Reports, parse_size

_S = f"({SIZE})"
_TORCH = re.compile(
    r"\b(?:(?P<device>[A-Z]{2,8}) out of memory\.(?= *(?:T|$))|(?P<mps>MPS) backend out of memory"
    r"|(?P<cpu>DefaultCPUAllocator): |(?P<pooled>Allocation on device) \d{1,4} would exceed)"
)
_PARTS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("requested", rf"[tT]ried to allocate {_S}"),
        ("requested", rf"Requested +: {_S}"),
        ("allocated", rf"Currently allocated +: {_S}"),
        ("capacity", rf"Device limit +: {_S}"),
        ("device_free", rf"Free \(according to CUDA\): {_S}"),
        ("allowed", rf"memory fraction\) +: {_S}"),
        ("device", r"Allocation on device (\d{1,4}) would"),
        ("device", r"\b(?:GPU|[A-Z]{3,5}) (\d{1,6})(?:;| has a total)"),
        ("capacity", rf"\btotal capac\w+ of {_S}"),
        ("capacity", rf"{_S} total capacity\b"),
        ("allowed", rf"max allowed: {_S}"),
        ("device_free", rf"\bof which {_S} is free"),
        ("device_free", rf"{_S} free[;)]"),
        ("allowed", rf"{_S} allowed;"),
        ("allocated", rf"{_S} is allocated by PyTorch"),
        ("allocated", rf"{_S} already allocated"),
        ("allocated", rf"MPS allocated: {_S}"),
        ("unallocated", rf"{_S} is reserved by PyTorch but unallocated"),
        ("unallocated", rf"{_S} cached\)"),
        ("reserved", rf"{_S} reserved in total by PyTorch"),
        ("private_pools", rf"with {_S} allocated in private pools"),
        ("other_allocations", rf"other allocations: {_S}"),
        ("this_process", rf"this process has {_S} memory in use"),
        ("process", rf"\bProcess \d{{1,12}} has {_S} memory in use"),
    )
)
_PROCESS = re.compile(rf"\bProcess (\d{{1,12}}) has {_S} memory in use")
_CAPTURE = re.compile(r"[Cc]aptur\w+ (?:cuda|CUDA) graph")
_BEFORE = 200
_MORE_LINES = 12
"""So many lines may one message be wrapped into."""
_SAME_NS = 10**10
"""What is printed again within ten seconds with the same numbers is the same failure."""


class TorchTexts:
    """PyTorch's OutOfMemoryError, in the wording of any release, CUDA and others.

    The allocator is named as PyTorch names the device, such as ``cuda:0`` (HIP devices too).
    """

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._text = ""
        self._time_ns: int | None = None
        self._left = 0
        self._op: str | None = None
        self._known: dict[tuple[object, ...], Report] = {}

    def line(self, line: str, time_ns: int | None) -> bool:
        """Read one line; False when it belongs to no such message."""
        match = _TORCH.search(line) if "memory" in line or "DefaultCPU" in line else None
        if match is not None:
            self.finish()
            self._text, self._time_ns, self._left = line[match.start() :], time_ns, _MORE_LINES
            is_capture = _CAPTURE.search(line, max(match.start() - _BEFORE, 0), match.start())
            self._op = "CUDA graph capture" if is_capture else None
        elif self._left and any(pattern.search(line) for _, pattern in _PARTS):
            self._text += " " + line.strip()
            self._left -= 1
        elif self._left and line.strip() and time_ns is None:
            # A line of a wrapped sentence need not have a whole part of it.
            self._text += " " + line.strip()
            self._left -= 1
            return False
        else:
            self.finish()
            return False
        if "but unallocated" in self._text or "in total by PyTorch" in self._text:
            self.finish()
        return True

    def finish(self) -> None:
        """The message is over: make it a report, unless it repeats one."""
        text, self._text, self._left = self._text, "", 0
        match = _TORCH.search(text)
        if match is None:
            return
        parts: dict[str, str] = {}
        for name, pattern in _PARTS:
            if result := pattern.search(text):
                parts.setdefault(name, result[1])
        if "requested" not in parts:
            return
        name = match["device"] or ""
        device = "cpu" if match["cpu"] else "mps" if match["mps"] else name.lower()
        # cudaMallocAsync's pool, whose text has a line for each size.
        device = "cuda" if name == "HIP" or match["pooled"] else device
        number, requested = parts.pop("device", ""), parts.pop("requested")
        if number:
            device += f":{number}"
        processes = tuple(_PROCESS.findall(text))
        key = (device, requested, *sorted(parts.items()), processes)
        if self._is_repeated(key):
            return
        report = self._known[key] = self._reports.new(device, self._time_ns)
        report.device, report.op = device, self._op
        report.requested, report.requested_text = parse_size(requested), requested
        parts.pop("process", None)
        sizes = {name: parse_size(size) for name, size in parts.items()}
        _fill(report, {name: size for name, size in sizes.items() if size < ABSENT})
        for process, size in processes:
            report.add_part("process", parse_size(size), process)
        if device == "cpu":
            report.kind = "host_memory"
        report.began = True
        report.ended = (
            report.free is not None
            or device in {"cpu", "mps"}
            or (match["pooled"] is not None and report.device_free is not None)
        )

    def _is_repeated(self, key: tuple[object, ...]) -> bool:
        """Wrappers and handlers print one failure several times."""
        known = self._known.get(key)
        if known is None:
            return False
        if self._time_ns is None or known.time_ns is None:
            return True
        return self._time_ns - known.time_ns <= _SAME_NS


def _fill(report: Report, parts: dict[str, int]) -> None:
    report.capacity = parts.get("capacity")
    report.limit = parts.get("allowed", parts.get("capacity"))
    report.device_free = parts.get("device_free")
    report.in_use = parts.get("allocated")
    report.free = parts.get("unallocated")
    report.pool = parts.get("reserved")
    if report.in_use is not None:
        if report.free is not None:
            report.pool = report.in_use + report.free
        elif report.pool is not None:
            report.free = max(report.pool - report.in_use, 0)
    for name in ("allowed", "private_pools", "other_allocations", "this_process"):
        report.add_part(name, parts.get(name))
    other = parts.get("other_allocations")
    if None not in (report.limit, report.in_use, other):
        # Metal's memory has one limit for both, and the text says nothing of a pool.
        held = (report.in_use or 0) + (other or 0)
        report.device_free = max((report.limit or 0) - held, 0)
