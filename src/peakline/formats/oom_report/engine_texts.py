"""Serving engines: what vLLM, SGLang and llama.cpp divide a device's memory into, and refuse.

A refused cache is a budget, not a full device: nothing was allocated. Sources:
``vllm/v1/core/kv_cache_utils.py``, ``vllm/v1/worker/gpu_worker.py`` in vllm-project/vllm;
``python/sglang/srt/mem_cache/memory_pool.py`` in sgl-project/sglang; ``ggml-cuda.cu``,
``ggml-alloc.c`` and ``src/llama-*.cpp`` in ggml-org/llama.cpp.
"""

from __future__ import annotations

import re

from peakline.formats.oom_report.report import SIZE, Report, Reports, agrees, parse_size

_S = f"({SIZE})"
_NUMBER = r"([\d,]{1,20})"
VLLM, SGLANG = "vllm kv cache", "sglang kv cache"

# Lines of a start that went well: what holds the memory. The word, the part, the pattern.
_HOLDERS = tuple(
    (word, part, re.compile(pattern))
    for word, part, pattern in (
        ("oading", "weights", rf"(?:Model loading|Loading model weights) took {_S}"),
        ("KV cache memory", "kv_cache", rf"Available KV cache memory: {_S}"),
        ("graph memory", "graphs", rf"Estimated CUDA graph memory: {_S}"),
        ("raph capturing", "graphs", rf"Graph capturing finished in .{{0,40}}?took {_S}"),
        ("weights take", "weights", rf"model weights take {_S}"),
        ("non_torch_memory", "outside_allocator", rf"non_torch_memory takes {_S}"),
        ("activation peak", "activations", rf"activation peak memory takes {_S}"),
        ("KV Cache is", "kv_cache", rf"reserved for KV Cache is {_S}"),
        ("gpu_memory_utilization", "budget", rf"gpu_memory_utilization \([\d.]{{1,9}}\) = {_S}"),
        ("total_gpu_memory", "device", rf"total_gpu_memory \({_S}\)"),
        ("total_gpu_memory=", "device", rf"total_gpu_memory={_S}"),
        ("peak_torch_memory=", "torch_peak", rf"peak_torch_memory={_S}"),
        ("non_torch_memory=", "outside_allocator", rf"non_torch_memory={_S}"),
        ("kv_cache_size=", "kv_cache", rf"kv_cache_size={_S}"),
        ("Load weight end", "weights", rf"Load weight end\..{{0,300}}?mem usage={_S}"),
        ("K size", "k_cache", rf"\bK size: {_S}"),
        ("V size", "v_cache", rf"\bV size: {_S}"),
        ("KV size", "kv_cache", rf"\bKV size: {_S}"),
        ("cuda graph end", "graphs", rf"Capture cuda graph end\..{{0,200}}?mem usage={_S}"),
        ("pool end", "left", rf"Memory pool end\. avail mem={_S}"),
    )
)
_BUFFERS = re.compile(
    rf"(?:^|[\s:])(\S{{1,40}}) +(model|KV|RS|compute|output) buffer size += +{_S}"
)
_SELF = re.compile(rf"KV self size += +{_S}")
_BUFFER_PARTS = {
    "model": "weights", "KV": "kv_cache", "RS": "kv_cache", "compute": "compute_buffer",
    "output": "output_buffer",
}  # fmt: skip
_NEEDS_CACHE = re.compile(
    rf"max seq len \({_NUMBER}\),? \(?{_S} KV cache is needed, which is larger than the available "
    rf"KV cache memory \({_S}\)(?:.{{0,80}}?maximum model length is {_NUMBER})?"
)
_NEEDS_TOKENS = re.compile(
    rf"max seq len \({_NUMBER}\) is larger than the maximum number of tokens that can be stored in "
    rf"KV cache \({_NUMBER}\)"
)
_START = re.compile(
    rf"Free memory on device .{{0,20}}?\({_S}/{_S}\) on startup is less than desired GPU memory "
    rf"utilization \([\d.]{{1,9}}, {_S}\)"
)
_BUDGETS = (
    ("No available memory for the cache blocks", VLLM),
    ("Not enough memory. Please try to increase --mem-fraction-static", SGLANG),
    ("Not enough memory. Please try increasing --mem-fraction-static", SGLANG),
    ("Not enough memory to handle", "tgi cache"),
    ("Decode out of memory", SGLANG),
    ("Prefill out of memory", SGLANG),
)
_MALLOC = re.compile(rf"allocating {_S}(?: on device (\d{{1,4}}))?: (?:cuda|hip|musa)Malloc failed")
_GGML = re.compile(
    r"(?:(\w{1,60}): )?(?:failed to allocate|unable to allocate) (\S{1,40}) buffer"
    r"(?: of size (\d{1,19}))?"
)
_VULKAN = re.compile(r"Device memory allocation of size (\d{1,19}) failed")
_METAL = re.compile(rf"error: failed to allocate buffer, size = +{_S}")
_STAGES = (
    ("alloc_tensor_range", "weights"), ("failed to load model", "weights"),
    ("unable to allocate", "weights"), ("buffer for kv cache", "kv cache"),
    ("gallocr_reserve", "compute buffer"), ("compute pp buffers", "compute buffer"),
    ("compute buffers", "compute buffer"),
)  # fmt: skip
_MESSAGE = 300

ANNOUNCING = (
    b"Model loading took", b"Loading model weights took", b"Available KV cache memory",
    b"CUDA graph memory: ", b"Graph capturing finished", b"model weights take",
    b"Memory profiling results",
    b"gpu_memory_utilization (", b"Load weight end", b"KV Cache is allocated", b" K size: ",
    b" KV size: ",
    b"Capture cuda graph ", b"Memory pool end", b" buffer size = ", b"KV self size",
    b"KV cache is needed", b"can be stored in KV cache", b"Free memory on device",
    b"memory for the cache blocks", b"Not enough memory", b"Malloc failed", b"failed to allocate ",
    b"unable to allocate ", b"Device memory allocation of size", b"failed to load model",
)  # fmt: skip


class EngineTexts:
    """Reads lines of serving engines: who holds what, then what did not fit."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._parts: dict[tuple[str, str | None], int] = {}
        self._is_vllm = False
        self._failed: Report | None = None

    def line(self, line: str, time_ns: int | None) -> bool:
        """Read one line; False when it is of no engine."""
        return self._holds(line) or self._cache(line, time_ns) or self._ggml(line, time_ns)

    def finish(self) -> None:
        """What was held belongs to what failed; without a failure it is a budget."""
        failed = [
            report for report in self._reports.all
            if report is self._failed or report.kind == "cache_budget"
            or report.allocator.startswith(("cuda", "musa", "npu"))
        ]  # fmt: skip
        if not self._reports.all and self._is_vllm and len(self._parts) > 1:
            report = self._reports.new("vllm", None)
            report.kind, report.began, report.ended = "budget", True, True
            failed = [report]
        for report in failed[:1]:
            for (part, subject), size in self._parts.items():
                report.add_part(part, size, subject)
            report.capacity = report.capacity or self._parts.get(("device", None))

    def _holds(self, line: str) -> bool:
        result = False
        for word, part, pattern in _HOLDERS:
            if word in line and (match := pattern.search(line)):
                self._parts[part, None] = parse_size(match[1])
                self._is_vllm |= part in {"budget", "device"}
                result = True
        if "uffer size" in line:
            for match in _BUFFERS.finditer(line):
                part = _BUFFER_PARTS[match[2]]
                self._parts[part, match[1].strip("[]")] = parse_size(match[3])
                result = True
        if "KV self size" in line and (match := _SELF.search(line)):
            self._parts["kv_cache", None] = parse_size(match[1])
            result = True
        return result

    def _cache(self, line: str, time_ns: int | None) -> bool:
        if "KV cache" in line and (match := _NEEDS_CACHE.search(line)):
            report = self._budget(VLLM, time_ns, line)
            report.requested, report.limit = parse_size(match[2]), parse_size(match[3])
            report.op = f"one request of {_plain(match[1])} tokens"
            if match[4]:
                report.message = f"{_plain(match[4])} tokens would fit"
            return True
        if "KV cache" in line and (match := _NEEDS_TOKENS.search(line)):
            report = self._budget(VLLM, time_ns, line)
            report.op = f"one request of {_plain(match[1])} tokens"
            report.message = f"{_plain(match[2])} tokens would fit"
            return True
        if "on startup" in line and (match := _START.search(line)):
            report = self._budget("cuda", time_ns, line)
            free, total, wanted = (_with_unit(text, match[3]) for text in match.groups())
            report.kind, report.requested = "other_processes", wanted
            report.device_free, report.capacity, report.pool = free, total, 0
            return True
        for words, allocator in _BUDGETS:
            if words in line:
                self._budget(allocator, time_ns, line)
                return True
        return False

    def _budget(self, allocator: str, time_ns: int | None, line: str) -> Report:
        last = self._reports.latest(allocator)
        if last is not None and last.kind == "cache_budget":
            # Every process of the engine prints it, and who catches it again.
            return last
        report = self._reports.new(allocator, time_ns)
        report.kind, report.message = "cache_budget", line.strip()[:_MESSAGE]
        report.began = report.ended = True
        return report

    def _ggml(self, line: str, time_ns: int | None) -> bool:
        stage = next((name for words, name in _STAGES if words in line), None)
        if "Malloc failed" in line and (match := _MALLOC.search(line)):
            self._refused(f"CUDA{match[2] or ''}", match[1], time_ns, line)
        elif "buffer" in line and (match := _GGML.search(line)) and match[3]:
            self._refused(match[2], match[3], time_ns, line)
        elif "error loading model: unable to allocate" in line and self._failed is None:
            self._failed = self._reports.new("", time_ns)
            self._failed.kind, self._failed.message = "driver", line.strip()[:_MESSAGE]
            self._failed.began = self._failed.ended = True
        elif "Device memory allocation" in line and (match := _VULKAN.search(line)):
            self._refused("Vulkan", match[1], time_ns, line)
        elif "allocate buffer" in line and (match := _METAL.search(line)):
            self._refused("Metal", match[1], time_ns, line)
        elif self._failed is None or stage is None:
            return False
        if stage is not None and self._failed is not None and self._failed.op is None:
            self._failed.op = stage
        return True

    def _refused(self, device: str, text: str, time_ns: int | None, line: str) -> None:
        last, size = self._failed, parse_size(text)
        if last is not None and last.requested is not None:
            is_same = last.requested == size or agrees(size, last.requested_text)
            if is_same or abs(last.requested - size) <= size / 100:
                # The next line has the bytes of it.
                last.requested = size if text.isdigit() else last.requested
                if last.allocator == "CUDA":
                    self._reports.rename(last, device)
                return
        self._failed = report = self._reports.new(device, time_ns)
        report.kind, report.message = "driver", line.strip()[:_MESSAGE]
        report.requested, report.requested_text = size, text
        report.began = report.ended = True


def _plain(number: str) -> str:
    return f"{int(number.replace(',', '') or 0):,}"


def _with_unit(text: str, other: str) -> int:
    """A size that leaves its unit to the one after it, as in ``3.9/79.2 GiB``."""
    unit = re.search(r"[KMGT]i?B", other)
    has_unit = re.search(r"[A-Z]", text)
    return parse_size(text if has_unit or unit is None else f"{text} {unit[0]}")
