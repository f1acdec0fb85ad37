"""A CUDA memory snapshot of a PyTorch program that runs on the CPU.

There is no GPU where the pairs are recorded. So the program and its stacks are real, and so is the
life of every tensor's storage: a dispatch mode follows them. Only the addresses come from a model
of the CUDA caching allocator with its default settings. Memory that an op needs only inside itself
is not seen; the two workspaces of cuBLAS are added where the first product is computed, one for the
main thread and one for the thread of the backward pass. ``to("cuda")`` and ``device="cuda"`` are
understood inside the mode; what is made before it is host memory.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import pickle
import sys
import time
import weakref
from pathlib import Path
from unittest import mock

import torch
from torch.autograd.profiler import record_function
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

MIB = 1 << 20
CUBLAS_WORKSPACE = 8_519_680
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
SKIPPED = (__file__, weakref.__file__)
WRAPPERS = {("_fn", "eval_frame.py"), ("inner", "_compile.py")}  # of the dispatch mode itself
PYTHON_HOME = (str(Path(os.__file__).parent), "/usr/lib/python3.11")
PACKAGES = (str(Path(torch.__file__).parents[1]), "/usr/lib/python3.11/site-packages")
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": "",
    "max_split_size": -1,
    "garbage_collection_threshold": 0.0,
    "expandable_segments": False,
    "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False,
    "pinned_use_cuda_host_register": False,
    "graph_capture_record_stream_reuse": False,
    "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
}


class _Block:
    """A piece of a segment; its neighbours are the pieces before and after it."""

    def __init__(self, segment, address, size):
        self.segment, self.address, self.size = segment, address, size
        self.requested, self.frames, self.in_use = 0, [], False
        self.before = self.after = None

    def __lt__(self, other):
        return (self.size, self.address) < (other.size, other.address)


class _Allocator:
    """The caching allocator: best fit in two pools, split, and merge when freed."""

    def __init__(self):
        self.free = {"small": [], "large": []}
        self.segments: list[tuple[str, int, _Block, list]] = []
        self.events: list[dict] = []
        self.is_recording = False
        self.next_address = 0x7F3A_4000_0000
        self.in_use = self.reserved = self.peak = self.peak_reserved = 0

    def event(self, action, address, size, frames):
        if self.is_recording:
            self.events.append(
                {
                    "action": action,
                    "addr": address,
                    "size": size,
                    "stream": 0,
                    "time_us": time.time_ns() // 1000,
                    "compile_context": "N/A",
                    "user_metadata": "",
                    "frames": frames,
                }
            )

    def allocate(self, requested, frames):
        size = max(512, -(-requested // 512) * 512)
        pool = "small" if size <= MIB else "large"
        free = self.free[pool]
        place = bisect.bisect_left(free, _Block(None, 0, size))
        block = free.pop(place) if place < len(free) else self._new_segment(pool, size, frames)
        rest = block.size - size
        if rest >= 512 if pool == "small" else rest > MIB:
            tail = _Block(block.segment, block.address + size, rest)
            tail.before, tail.after, block.size = block, block.after, size
            if tail.after is not None:
                tail.after.before = tail
            block.after = tail
            bisect.insort(free, tail)
        block.in_use, block.requested = True, requested
        block.frames = frames if self.is_recording else []
        self.in_use += block.size
        self.peak = max(self.peak, self.in_use)
        self.event("alloc", block.address, requested, frames)
        return block

    def _new_segment(self, pool, size, frames):
        if pool == "small":
            total = 2 * MIB
        else:
            total = 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        block = _Block(len(self.segments), self.next_address, total)
        self.next_address += total + (2 * MIB if len(self.segments) % 5 == 4 else 0)
        self.segments.append((pool, total, block, frames if self.is_recording else []))
        self.reserved += total
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        self.event("segment_alloc", block.address, total, frames)
        return block

    def release(self, block, frames):
        self.event("free_requested", block.address, block.requested, frames)
        self.event("free_completed", block.address, block.requested, frames)
        self.in_use -= block.size
        block.in_use = False
        free = self.free[self.segments[block.segment][0]]
        if block.after is not None and not block.after.in_use:
            free.remove(block.after)
            self._merge(block, block.after)
        if block.before is not None and not block.before.in_use:
            free.remove(block.before)
            block = self._merge(block.before, block)
        bisect.insort(free, block)

    def _merge(self, first, second):
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first

    def state(self):
        for pool, total, block, frames in self.segments:
            blocks = []
            piece, first = block, block.address
            while piece is not None:
                blocks.append(
                    {
                        "address": piece.address,
                        "size": piece.size,
                        "requested_size": piece.requested if piece.in_use else 0,
                        "state": "active_allocated" if piece.in_use else "inactive",
                        "frames": piece.frames if piece.in_use else [],
                    }
                )
                piece = piece.after
            used = [b for b in blocks if b["state"] != "inactive"]
            yield {
                "device": 0,
                "address": first,
                "total_size": total,
                "allocated_size": sum(b["size"] for b in used),
                "active_size": sum(b["size"] for b in used),
                "requested_size": sum(b["requested_size"] for b in used),
                "stream": 0,
                "segment_type": pool,
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": frames,
                "blocks": blocks,
            }


class _Moves(TorchFunctionMode):
    """What names the device: a move to it is a copy, a factory on it makes device memory."""

    def __init__(self, owner):
        super().__init__()
        self.owner = owner

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("to", "cuda") and isinstance(args[0], torch.Tensor):
            places = [v for v in (*args[1:], *kwargs.values()) if str(v).startswith("cuda")]
            if name == "cuda" or places:
                types_ = [v for v in (*args[1:], *kwargs.values()) if isinstance(v, torch.dtype)]
                is_known = self.owner.knows(args[0])
                with torch.no_grad():  # a detached view would make the host's storage known
                    moved = args[0] if is_known else args[0].clone()
                return moved.to(types_[0]) if types_ else moved
        if str(kwargs.get("device")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


class MemorySnapshot(TorchDispatchMode):
    """``with MemorySnapshot() as gpu``, ``gpu.record_memory_history()``, ``gpu.dump(path)``.

    ``stacks`` is what history records of the thread of the backward pass: ``"all"`` has the C++
    frames of it, ``"python"`` has none. ``annotations`` adds the scopes of ``record_function``.
    """

    def __init__(self, *, stacks="python", annotations=False):
        super().__init__()
        self.allocator = _Allocator()
        self.stacks, self.has_annotations = stacks, annotations
        self.annotations: list[dict] = []
        self.live: dict[int, _Block] = {}
        self.stack_cache: dict[tuple, list] = {}
        self.workspaces: set[bool] = set()
        self.waiting: list[int] = []
        self.is_busy = False
        self.moves = _Moves(self)
        self.scopes = contextlib.ExitStack()

    def __enter__(self):
        if self.has_annotations:
            for method, stage in (("__enter__", "START"), ("__exit__", "END")):
                patched = self._marked(getattr(record_function, method), stage)
                self.scopes.enter_context(mock.patch.object(record_function, method, patched))
        self.moves.__enter__()
        return super().__enter__()

    def __exit__(self, *what):
        super().__exit__(*what)
        self.moves.__exit__(*what)
        self.scopes.close()

    def _marked(self, method, stage):
        def marked(scope, *args):
            self.annotate(scope.name, stage)
            return method(scope, *args)

        return marked

    def record_memory_history(self):
        """From here on events and stacks are recorded."""
        self.allocator.is_recording = True

    def annotate(self, name, stage):
        """A scope begins (``START``) or ends (``END``)."""
        if self.has_annotations and self.allocator.is_recording:
            now = time.time_ns() // 1000
            self.annotations.append({"name": name, "stage": stage, "device": 0, "time_us": now})

    @property
    def in_use(self) -> int:
        """Bytes in use now, as the allocator counts them."""
        return self.allocator.in_use

    @property
    def peak(self) -> int:
        """Most bytes in use until now."""
        return self.allocator.peak

    @property
    def peak_reserved(self) -> int:
        """Most bytes taken from the device until now."""
        return self.allocator.peak_reserved

    def reset_peak(self):
        """Count the peak from here on."""
        self.allocator.peak = self.allocator.in_use

    def knows(self, tensor) -> bool:
        """The tensor's storage is device memory."""
        return tensor.untyped_storage()._cdata in self.live

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        short = func._schema.name.split("::")[-1]
        in_backward = torch._C._current_graph_task_id() != -1
        if short in PRODUCTS and in_backward not in self.workspaces:
            self.workspaces.add(in_backward)
            self.allocator.allocate(CUBLAS_WORKSPACE, self._frames())
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, torch.Tensor):
                self._follow(value)
        return result

    def _follow(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.live or storage.nbytes() == 0:
            return
        self.is_busy = True  # garbage collection may end a storage while the lists change
        self.live[key] = self.allocator.allocate(storage.nbytes(), self._frames())
        weakref.finalize(storage, self._ended, key).atexit = False
        self.is_busy = False
        while self.waiting:
            self._ended(self.waiting.pop(0))

    def _ended(self, key):
        if self.is_busy:
            self.waiting.append(key)
            return
        self.allocator.release(self.live.pop(key), self._frames())

    def _frames(self):
        if not self.allocator.is_recording:
            return []
        if torch._C._current_graph_task_id() != -1:
            node = torch._C._current_autograd_node()
            result = _backward_frames(node.name() if node else "") if self.stacks == "all" else ()
        else:
            result = []
            frame = sys._getframe(1)
            while frame is not None:
                code = frame.f_code
                if code.co_name == "handle_torch_function":
                    frame = frame.f_back.f_back
                    continue
                name = (code.co_name, Path(code.co_filename).name)
                if code.co_filename not in SKIPPED and name not in WRAPPERS:
                    place = code.co_filename.replace(*PACKAGES).replace(*PYTHON_HOME)
                    result.append((code.co_name, place, frame.f_lineno))
                frame = frame.f_back
        key = tuple(result)
        if key not in self.stack_cache:
            self.stack_cache[key] = [{"name": n, "filename": f, "line": line} for n, f, line in key]
        return self.stack_cache[key]

    def dump(self, path: Path) -> None:
        """Write what ``torch.cuda.memory._dump_snapshot`` writes."""
        events = self.allocator.events
        self.allocator.event("snapshot", 0, 0, self._frames())
        content = {
            "segments": sorted(self.allocator.state(), key=lambda s: s["address"]),
            "device_traces": [list(events)],
            "allocator_settings": SETTINGS,
            "external_annotations": list(self.annotations),
        }
        with Path(path).open("wb") as file:
            pickle.dump(content, file)


def _backward_frames(node):
    plain = node.rstrip("0123456789")
    names = [f"torch::autograd::generated::{plain}0::apply(...)"] if plain else []
    names += [
        "torch::autograd::Node::operator()(...)",
        "torch::autograd::Engine::evaluate_function(...)",
        "torch::autograd::Engine::thread_main(...)",
        "torch::autograd::python::PythonEngine::thread_init(...)",
    ]
    return [(name, "??", 0) for name in names]
