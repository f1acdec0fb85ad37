"""An allocation failed: what was wanted, what was free, and why that was not enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import Kind, columns
from peakline.memory.oom import MOMENT_PS
from peakline.safe_text import cut_middle
from peakline.text import counted, size_text, time_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext
    from peakline.memory.oom import FailedMoment, Failure

KIND = Kind(
    "out_of_memory",
    __doc__,
    about="memory",
    phrase="memory ran out",
    severity="error",
    section="failure",
    columns=columns(
        "allocator", "op", "device", "data_type", "shape", "free_bytes", "fragmentation", "bytes",
        "count",
        cause="Cause",
        requested_bytes="Requested",
        rounded_bytes="Rounded up to",
        limit_bytes="Limit",
        pool_bytes="Taken from the device",
        in_use_bytes="In use",
        largest_free_bytes="Largest free piece",
        would_fit="A free piece was large enough",
        device_free_bytes="Free on the device",
        outside_bytes="Held outside the pool",
        top_chunks="Pieces in use, by size",
        total_bytes="Together",
        capacity_bytes="The device has",
        source="Requested in",
        message="The text",
        alike="Failed alike",
        parts="What the text says",
        part="What",
        subject="Which",
        is_complete="The whole report is there",
        failed_requests="Failed requests",
        last_after_ps="The last one failed after",
    ),
    limit="limit_bytes",
)  # fmt: skip

_NUMBERS = (
    "requested_bytes", "rounded_bytes", "op", "device", "data_type", "shape", "limit_bytes",
    "pool_bytes", "in_use_bytes", "free_bytes", "largest_free_bytes", "fragmentation", "would_fit",
    "device_free_bytes", "outside_bytes", "capacity_bytes", "source", "message",
)  # fmt: skip
"""What is said of a failure as far as its report has it."""

OUTSIDE = 0.1
"""Memory of the device outside the pool is worth a word from this share of the limit on."""

_SUGGESTIONS = {
    "unknown": "The report does not say what was free{buffers}.",
    "refused": (
        "The device reported {device_free} free, which is enough, and the request still failed; "
        "the text does not say why. It can be a limit of this process (a memory fraction, a "
        "container, WSL or WDDM), no single piece of that size, a driver that may not see what "
        "others use, or memory that was freed in between."
    ),
    "process_limit": (
        "This process may take {allowed} of the device (a memory fraction is set): raise it, or "
        "reduce what is live."
    ),
    "other_processes": (
        "{holders}. End them or take another device: what this program's pool could free is less."
    ),
    "outside_allocator": (
        "This process holds {outside} of the device outside the allocator (contexts of CUDA and "
        "NCCL, libraries, another framework), which emptying its cache does not free: look for "
        "what else uses the device in this process."
    ),
    "private_pools": (
        "{private} of the {in_use} allocated are in private pools of CUDA graphs: what is free in "
        "them is of no use to others. Capture fewer or smaller shapes (vLLM: "
        "cudagraph_capture_sizes, SGLang: --cuda-graph-max-bs), let the graphs share one pool, or "
        "take a mode without them (torch.compile's default, vLLM's --enforce-eager)."
    ),
    "other_allocations": (
        "{other} are allocations of Metal outside PyTorch's pool, more than PyTorch's {in_use}: "
        "look for what else of this process uses the GPU (another framework, images, "
        "buffers of views). PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the limit, not the memory."
    ),
    "larger_than_limit": (
        "The request alone exceeds what the allocator may take: split the tensor or the program "
        "(smaller batch, rematerialisation, sharding), or raise the limit."
    ),
    "padding": (
        "Padding takes {padding} of what it needs{tensor}: a question of the layout, not of the "
        "size. Give the tensor a last dimension that fills the tile (a multiple of 128, the one "
        "before it of 8), by merging or moving its small dimensions, or let the op work on "
        "another shape."
    ),
    "driver": (
        "The driver had no more for this process, outside its pool or when that wanted to grow; "
        "the text does not say what was free. Look for other processes on the device and for what "
        "takes memory beside the pool (contexts, graphs, communicators), and leave it more room."
    ),
    "library": (
        "A library found no memory for its handle or its workspace: the usual sign of a device "
        "that is nearly full, and no proof of it. Leave it room: less in the framework's pool "
        "(its cache counts too), a smaller batch, no other process on the device."
    ),
    "cache_budget": "{budget}",
    "summary": (
        "A summary has no events. To see what holds the memory at the peak, record a snapshot "
        "(torch.cuda.memory._record_memory_history() before, "
        "torch.cuda.memory._dump_snapshot('memory.pickle') after) and open that.{ooms}"
    ),
    "budget": "No failure stands in this text; it says what the memory is divided into.",
    "host_memory": (
        "The host had no memory for it, not the device: smaller pieces, a memory map, fewer "
        "workers or processes, or a machine or container with more."
    ),
    "host_limit": (
        "The limit of a container, job or group of processes was reached, not that of the machine: "
        "raise it, or use less memory of the host: fewer workers, smaller buffers and caches, no "
        "copies in every process. Who is killed need not be who holds most."
    ),
    "host_full": (
        "The machine's memory was full, without a limit of a group: fewer processes or workers, "
        "smaller buffers, or a machine with more. Who is killed need not be who holds most."
    ),
    "killed": (
        "Signal 9 (exit code 137) alone is no evidence that memory ran out: look for 'Killed "
        "process' in the kernel's log (dmesg, journalctl -k), for oom_kill in the group's "
        "memory.events, for OOMKilled in the container's state, or in what the scheduler says."
    ),
    "shared_memory": (
        "The workers' /dev/shm is too small for what they hand over: a larger one (docker run "
        "--shm-size, an emptyDir of medium Memory), fewer workers, less prefetching, or "
        "torch.multiprocessing.set_sharing_strategy('file_system')."
    ),
    "held_back": (
        "A free chunk was large enough, so it was held back for work that had not finished; "
        "synchronise before the large allocation, or run fewer steps at once."
    ),
    "fragmented": (
        "Enough was free, but in pieces: keep sizes constant from step to step, allocate the "
        "large buffers first, or let the allocator remap memory ({remap})."
    ),
    "device_full": (
        "The allocator was still allowed to grow, but the device had no more: look for other "
        "processes on it, and for memory that the driver and libraries take."
    ),
    "full": (
        "Reduce what is live at that point (smaller batch, rematerialisation, lower precision, "
        "sharding): {less}."
    ),
}


def find(context: MemoryContext) -> Findings:
    """A finding for each moment, about the first request that failed."""
    for moment in context.failures:
        failure, count = moment.failures[0], len(moment.failures)
        evidence: dict[str, object] = {"allocator": failure.allocator, "cause": failure.cause}
        numbers = {name: getattr(failure, name) for name in _NUMBERS}
        evidence.update({name: value for name, value in numbers.items() if value is not None})
        if failure.parts:
            evidence["parts"] = [
                {"part": part, "subject": subject or "", "bytes": size}
                for part, subject, size in failure.parts
            ]
        if moment.top_chunks:
            evidence["top_chunks"] = moment.top_chunks
        evidence["is_complete"] = failure.is_complete
        if len(moment.allocators) > 1:
            evidence["alike"] = ", ".join(moment.allocators)
        if count > 1:
            evidence |= {"failed_requests": count, "last_after_ps": moment.span_ps}
        suggestion = _suggestion(failure, has_buffers=bool(moment.top_chunks))
        severity = _SEVERITIES.get(failure.cause, "")
        yield KIND.finding(_title(moment), evidence, suggestion, severity=severity)


_SEVERITIES = {"budget": "info", "summary": "info", "killed": "warning"}
_OWN_TITLES = {
    "cache_budget": "the {allocator} does not fit",
    "budget": "{allocator} divides its memory",
    "summary": "{allocator} did not run out of memory by this summary",
    "killed": "a process was killed, and the text does not say that memory ran out",
    "host_limit": "the host killed a process at its memory limit ({allocator})",
    "host_full": "the host ran out of memory and killed a process ({allocator})",
}


def headline_of(failure: Failure) -> str:
    """What happened, without numbers."""
    name = failure.allocator or "an allocator"
    return _OWN_TITLES.get(failure.cause, "{allocator} ran out of memory").format(allocator=name)


def requester(failure: Failure) -> str:
    """Who wanted the memory, or what for."""
    is_purpose = failure.op in _STAGES or failure.kind == "cache_budget"
    return f"for {failure.op}" if is_purpose else f"by {failure.op}"


def _title(moment: FailedMoment) -> str:
    failure, count = moment.failures[0], len(moment.failures)
    is_torch = _is_torch(failure)
    parts = []
    if failure.requested_bytes is not None:
        word = "needed" if failure.kind in {"program", "cache_budget"} else "requested"
        request = f"{size_text(failure.requested_bytes)} {word}"
        parts.append(f"{request} {requester(failure)}" if failure.op else request)
    elif failure.op:
        is_victim = failure.cause in {"host_limit", "host_full", "killed", "summary"}
        parts.append(failure.op if is_victim else f"requested {requester(failure)}")
    if failure.shape is not None:
        parts.append(f"{failure.data_type or 'tensor'} {failure.shape}")
    if failure.source is not None:
        parts.append(f"in {failure.source}")
    limit, pool, free = failure.limit_bytes, failure.pool_bytes, failure.free_bytes
    if failure.in_use_bytes is not None:
        most = pool if limit is None else limit
        of = "" if most is None else f" of {size_text(most)}"
        held = "allocated" if is_torch else "in use"
        parts.append(f"{size_text(failure.in_use_bytes)}{of} {held}")
    elif limit is not None:
        parts.append(f"{size_text(limit)} at most")
    if (private := failure.part("private_pools")) is not None:
        parts.append(f"{size_text(private)} of it in private pools")
    if (other := failure.part("other_allocations")) is not None:
        parts.append(f"other allocations {size_text(other)}")
    if free is not None:
        parts.append(
            f"{size_text(pool)} reserved, {size_text(free)} of that free"
            if is_torch and pool is not None
            else f"{size_text(free)} free"
        )
    if (peak := failure.part("peak_allocated")) is not None:
        parts.append(f"{size_text(peak)} allocated at the most")
    if failure.largest_free_bytes is not None and failure.free_bytes != 0:
        parts.append(f"the largest piece {size_text(failure.largest_free_bytes)}")
    if failure.device_free_bytes is not None:
        where = "of the host" if failure.kind == "host_memory" else "on the device"
        parts.append(f"{size_text(failure.device_free_bytes)} free {where}")
    if failure.cause == "cache_budget" and failure.message and "would fit" in failure.message:
        parts.append(failure.message)
    title = headline_of(failure)
    ranks = len(moment.allocators)
    if ranks > 1:
        title = f"{title}, and {counted(ranks - 1, 'more device')} alike"
        count -= ranks - 1
    facts = ", ".join(parts)
    if count == 1:
        return f"{title}: {facts}" if parts else title
    within = "one moment" if moment.span_ps <= MOMENT_PS else time_text(moment.span_ps)
    title += f": {count:,} failed requests in {within}"
    return f"{title}, the first: {facts}" if parts else title


def _is_torch(failure: Failure) -> bool:
    """PyTorch names an allocator as its device, and says allocated and reserved."""
    return failure.allocator.partition(":")[0] in _TORCH_SETTINGS


_TORCH_SETTINGS = {
    "cuda": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "npu": "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
    "xpu": "torch.xpu.empty_cache before it",
    "musa": "max_split_size_mb or expandable_segments, where the build has them",
}
"""What PyTorch has against pieces, by the name of the device."""


def _suggestion(failure: Failure, *, has_buffers: bool) -> str:
    remap = _TORCH_SETTINGS.get(
        failure.allocator.partition(":")[0],
        "TF_GPU_ALLOCATOR=cuda_malloc_async for TensorFlow on a GPU",
    )
    outside, total = failure.outside_bytes, failure.capacity_bytes or failure.limit_bytes or 0
    is_shared = outside is not None and outside >= OUTSIDE * total
    # A device that the pool itself fills has no other processes worth a word.
    is_own = failure.cause == "device_full" and outside is not None and not is_shared
    cause = "full" if is_own and _short(failure) > 0 else failure.cause
    text = _SUGGESTIONS[cause].format(
        less=_less(failure),
        remap=remap,
        buffers="; see what the buffers in it hold" if has_buffers else "",
        holders=_holders(failure),
        device_free=_size(failure.device_free_bytes),
        in_use=_size(failure.in_use_bytes),
        outside=_size(failure.own_outside_bytes),
        allowed=_size(failure.part("allowed")),
        private=_size(failure.part("private_pools")),
        other=_size(failure.part("other_allocations")),
        budget=_budget(failure),
        ooms=_counted_failures(failure),
        padding=_size(failure.padding_bytes),
        tensor=_padded(failure),
    )
    text += "".join(f" {more}" for more in (_stage(failure), _needs(failure)) if more)
    if cause == "refused" and (allowed := failure.part("allowed")) is not None:
        text += f" The text names a limit of {size_text(allowed)} for this process."
    if not is_shared or cause in {"other_processes", "refused", "outside_allocator"}:
        return text
    if failure.processes and failure.others_bytes:
        return f"{text} {_holders(failure)}."
    return f"{text} {_size(outside)} of the device are held outside this pool."


_NEEDS = {
    "program": "program", "arguments": "arguments", "parameters": "parameters",
    "constants": "constants", "outputs": "outputs", "temporaries": "temporaries",
    "reserved": "reserved", "total": "in all",
}  # fmt: skip


def _needs(failure: Failure) -> str:
    """What a compiled program needs, as far as the report says it."""
    sizes = [(word, failure.part(name)) for name, word in _NEEDS.items()]
    known = [f"{word} {size_text(size)}" for word, size in sizes if size]
    if failure.part("weights") is not None or not known:
        return ""
    exceeded = failure.part("exceeded")
    beyond = f"; {size_text(exceeded)} more than there is" if exceeded else ""
    return f"The program's needs by the report: {', '.join(known)}{beyond}."


_HOLDERS = {
    "weights": "weights", "kv_cache": "KV cache", "k_cache": "K cache", "v_cache": "V cache",
    "torch_peak": "PyTorch's peak", "activations": "activations",
    "outside_allocator": "outside PyTorch", "graphs": "CUDA graphs",
    "compute_buffer": "compute buffers", "output_buffer": "output buffers", "budget": "budget",
    "device": "device", "anonymous": "anonymous memory", "shared_memory": "shared memory",
    "file_pages": "file pages",
}  # fmt: skip


def _held(failure: Failure) -> str:
    """Who holds the memory by an engine's or the kernel's lines, parts of several devices added."""
    sizes: dict[str, int] = {}
    for part, _, size in failure.parts:
        if part in _HOLDERS:
            sizes[part] = sizes.get(part, 0) + size
    known = [f"{word} {size_text(sizes[part])}" for part, word in _HOLDERS.items() if part in sizes]
    return f"By the text: {', '.join(known)}." if known else ""


def _budget(failure: Failure) -> str:
    """What to do about a cache that does not fit: each engine has a share of its own."""
    name = failure.allocator.partition(" ")[0]
    if name == "vllm":
        return (
            "Nothing was full: the share of the device that vLLM may take leaves too little for "
            "its KV cache. Lower max_model_len to what fits, raise gpu_memory_utilization, or make "
            "the weights smaller (quantised, split over more devices)."
        )
    if name == "sglang":
        return (
            "Nothing was full: what SGLang's mem-fraction-static leaves beside the weights is too "
            "little for its KV cache. Raise it, lower the context length, or split the weights."
        )
    return "Nothing was full: the cache's share of the device is too small for what it must hold."


_STAGES = {
    "weights": "The weights did not fit: fewer layers on the device (-ngl), fewer bits.",
    "kv cache": "The KV cache did not fit: a smaller context (-c), a quantised cache.",
    "compute buffer": (
        "The compute buffer did not fit: a smaller batch (-ub, -b), flash attention (-fa)."
    ),
    "CUDA graph capture": (
        "It failed while CUDA graphs were captured, after the cache had taken its share: lower "
        "that share (gpu_memory_utilization, mem-fraction-static) or capture fewer shapes."
    ),
}


def _stage(failure: Failure) -> str:
    """When an engine failed, and who held what then."""
    return " ".join(one for one in (_STAGES.get(failure.op or ""), _held(failure)) if one)


def _padded(failure: Failure) -> str:
    """The tensor with most padding: without its number in the list."""
    rows = [(size, subject or "") for part, subject, size in failure.parts if part == "padding"]
    if not rows:
        return ""
    size, subject = max(rows)
    return f", {size_text(size)} of it for {cut_middle(subject.partition('. ')[2], _NAME)}"


_NAME = 100


def _counted_failures(failure: Failure) -> str:
    """What a summary counted before it."""
    if failure.message is None or failure.message.startswith("0 out-of-memory errors, 0 "):
        return ""
    return f" It counts {failure.message}: memory was short before."


def _size(size: int | None) -> str:
    return "?" if size is None else size_text(size)


_MOST_PROCESSES = 4


def _holders(failure: Failure) -> str:
    """Which processes hold the device, as far as the report names them."""
    start = failure.part("free_at_start")
    if start is not None and failure.capacity_bytes is not None:
        return (
            f"Of the {size_text(failure.capacity_bytes)} of the device {size_text(start)} were "
            "free when this process started: other processes hold the rest"
        )
    others = sorted(failure.processes.items(), key=lambda one: -one[1])
    if others:
        named = ", ".join(
            f"{name} with {size_text(size)}" for name, size in others[:_MOST_PROCESSES]
        )
        more = len(others) - _MOST_PROCESSES
        word = "process" if len(others) == 1 else "processes"
        return f"On the device {'is' if len(others) == 1 else 'are'} {word} {named}" + (
            f" and {more} more" if more > 0 else ""
        )
    return (
        f"{_size(failure.outside_bytes)} of the device are neither free nor in this pool: other "
        "processes hold them, or this one outside the pool; see which with the device's own tool "
        "(nvidia-smi, npu-smi)"
    )


def _short(failure: Failure) -> int:
    """What a request lacks, where it may have a free piece of the pool or what the device has."""
    return (failure.needed or 0) - max(failure.device_free_bytes or 0, failure.free_bytes or 0)


def _less(failure: Failure) -> str:
    """How much less must be live. A request needs one piece: free ones apart do not add up."""
    needed, free, largest = failure.needed or 0, failure.free_bytes, failure.largest_free_bytes
    if failure.cause == "device_full":
        return (
            f"at least {size_text(_short(failure))} more must be free, this pool fills the device"
        )
    if free is None:
        free = failure.device_free_bytes or 0
    short = f"at least {size_text(needed - free)} more must be free"
    if largest is None:
        return f"{short}, and in one piece" if free else short
    if largest >= free:
        return f"{short}, next to the piece that is" if free else short
    return (
        f"the {size_text(free)} free are in pieces of at most {size_text(largest)}, so "
        f"{size_text(needed - largest)} next to the largest, or {size_text(needed)} in one piece "
        "elsewhere, must become free"
    )
