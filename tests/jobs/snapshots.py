"""Memory snapshots of PyTorch for each rank of a job, with what each rank holds at its peak.

Every buffer is a segment of its own, a multiple of 2 MiB, and is used again for the next request
of its size, so that what is reserved has no part in the truth.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MIB = 1 << 20
_TORCH = "/opt/venv/lib/python3.12/site-packages/torch"
Frames = tuple[tuple[str, str, int], ...]
_LOOP = ("<module>", "/srv/train/main.py", 118)
_STEP = ("train_step", "/srv/train/main.py", 64)
BUILD: Frames = (
    ("__init__", f"{_TORCH}/nn/modules/linear.py", 106),
    ("build_layers", "/srv/train/model.py", 31),
    _LOOP,
)
FORWARD: Frames = (
    ("forward", f"{_TORCH}/nn/modules/linear.py", 125),
    ("forward", "/srv/train/model.py", 48),
    _STEP,
    _LOOP,
)
BACKWARD: Frames = (
    ("_engine_run_backward", f"{_TORCH}/autograd/graph.py", 829),
    ("backward", f"{_TORCH}/_tensor.py", 648),
    ("train_step", "/srv/train/main.py", 66),
    _LOOP,
)
OPTIMIZER: Frames = (
    ("_init_group", f"{_TORCH}/optim/adamw.py", 166),
    ("step", f"{_TORCH}/optim/adamw.py", 236),
    ("train_step", "/srv/train/main.py", 67),
    _LOOP,
)
EMBEDDING: Frames = (("__init__", f"{_TORCH}/nn/modules/sparse.py", 167), *BUILD[1:])
LOGITS: Frames = (("logits", "/srv/train/model.py", 77), _STEP, _LOOP)
CACHE: Frames = (("keep_predictions", "/srv/train/evaluate.py", 57), _STEP, _LOOP)


@dataclass(frozen=True)
class Shape:
    """What a rank holds: bytes of each layer's weights and activations, and of extras.

    ``in_flight`` is how many microbatches' activations are held at once; ``state`` is how many
    times the optimizer holds the weights. ``cached`` bytes are added in each step and never freed.
    """

    layers: int = 6
    weights: int = 48 * _MIB
    activations: int = 32 * _MIB
    microbatches: int = 1
    in_flight: int = 1
    state: int = 2
    embedding: int = 0
    logits: int = 0
    cached: int = 0


@dataclass
class SnapshotTruth:
    """By rank: the most that is allocated at once, and by (file, line) what is held then."""

    peak_bytes: dict[int, int] = field(default_factory=dict)
    at_peak: dict[int, dict[tuple[str, int], int]] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)


class _History:
    """What an allocator did, entry by entry."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.entries: list[dict[str, object]] = []
        self.live: dict[int, tuple[int, Frames]] = {}
        self.pools: dict[int, list[int]] = defaultdict(list)
        self.segments: dict[int, int] = {}
        self.top = 0x7F00_0000_0000
        self.total = self.peak = 0
        self.at_peak: dict[tuple[str, int], int] = {}

    def entry(self, action: str, address: int, size: int, frames: Frames) -> None:
        self.entries.append(
            {"action": action, "addr": address, "size": size, "stream": 0,
             "time_us": 1_795_906_347_000_000 + 40 * len(self.entries), "frames": _frames(frames)}
        )  # fmt: skip

    def alloc(self, size: int, frames: Frames) -> int:
        if not self.pools[size]:
            self.entry("segment_alloc", self.top, size, frames)
            self.pools[size].append(self.top)
            self.segments[self.top] = size
            self.top += size
        address = self.pools[size].pop()
        self.entry("alloc", address, size, frames)
        self.live[address] = (size, frames)
        self.total += size
        if self.total > self.peak:
            self.peak = self.total
            lines: Counter[tuple[str, int]] = Counter()
            for held, where in self.live.values():
                own = next(frame for frame in where if not frame[1].startswith(_TORCH))
                lines[own[1], own[2]] += held
            self.at_peak = dict(lines)
        return address

    def free(self, address: int) -> None:
        size, _ = self.live.pop(address)
        self.entry("free_requested", address, size, ())
        self.entry("free_completed", address, size, ())
        self.pools[size].append(address)
        self.total -= size

    def snapshot(self) -> dict[str, object]:
        segments = []
        for address, size in self.segments.items():
            is_live = address in self.live
            frames = self.live[address][1] if is_live else ()
            block = {
                "address": address, "size": size, "requested_size": size if is_live else 0,
                "state": "active_allocated" if is_live else "inactive", "frames": _frames(frames),
            }  # fmt: skip
            live = size if is_live else 0
            segments.append(
                {"device": self.device, "address": address, "total_size": size,
                 "allocated_size": live, "active_size": live, "requested_size": live, "stream": 0,
                 "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                 "frames": [], "blocks": [block]}
            )  # fmt: skip
        traces: list[list[dict[str, object]]] = [[] for _ in range(self.device)]
        settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                    "garbage_collection_threshold": 0.0, "expandable_segments": False,
                    "pinned_num_register_threads": 1, "roundup_power2_divisions": {}}  # fmt: skip
        return {"segments": segments, "device_traces": [*traces, self.entries],
                "allocator_settings": settings}  # fmt: skip


def _frames(frames: Frames) -> list[dict[str, object]]:
    return [{"name": name, "filename": file, "line": line} for name, file, line in frames]


def _train(shape: Shape, steps: int, device: int) -> _History:
    history = _History(device)
    for _ in range(shape.layers):
        history.alloc(shape.weights, BUILD)
    if shape.embedding:
        history.alloc(shape.embedding, EMBEDDING)
    for step in range(steps):
        gradients: list[int] = []
        held: list[list[int]] = []

        def backward(activations: list[int], gradients: list[int] = gradients) -> None:
            for address in reversed(activations):
                if len(gradients) < shape.layers:
                    gradients.append(history.alloc(shape.weights, BACKWARD))
                history.free(address)

        for _ in range(shape.microbatches):
            held.append([history.alloc(shape.activations, FORWARD) for _ in range(shape.layers)])
            if shape.logits:
                logits = history.alloc(shape.logits, LOGITS)
                history.free(logits)
            if len(held) == shape.in_flight:
                backward(held.pop(0))
        while held:
            backward(held.pop(0))
        if shape.cached:
            history.alloc(shape.cached, CACHE)
        if step == 0:
            for _ in range(shape.state * shape.layers):
                history.alloc(shape.weights, OPTIMIZER)
        for address in gradients:
            history.free(address)
    return history


def write_snapshots(
    directory: Path,
    shapes: Sequence[Shape],
    *,
    steps: int = 3,
    names: str = "memory_rank{rank}.pickle",
    per_host: int = 8,
) -> SnapshotTruth:
    """Write a snapshot for each rank, whose shapes are given, and say what each holds."""
    truth = SnapshotTruth()
    for rank, shape in enumerate(shapes):
        history = _train(shape, steps, rank % per_host)
        path = directory / names.format(rank=rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(history.snapshot(), protocol=4))
        truth.peak_bytes[rank] = history.peak
        truth.at_peak[rank] = history.at_peak
        truth.files[rank] = path.name
    return truth


def fat_rank_zero(ranks: int, cached: int = 96 * _MIB) -> list[Shape]:
    """Equal ranks, but rank 0 keeps predictions of every step: ``/srv/train/evaluate.py:57``."""
    return [Shape(cached=cached if rank == 0 else 0) for rank in range(ranks)]


def pipeline(stages: int, microbatches: int = 8) -> list[Shape]:
    """Stages of 1F1B: the first holds most microbatches and the embedding, the last the logits."""
    return [
        Shape(
            layers=2, microbatches=microbatches, in_flight=min(stages - stage, microbatches),
            embedding=64 * _MIB if stage == 0 else 0,
            logits=128 * _MIB if stage == stages - 1 else 0,
        )
        for stage in range(stages)
    ]  # fmt: skip


def sharded(ranks: int, *, whole: int | None = None) -> list[Shape]:
    """Fully sharded ranks; one of them has an optimizer that holds the whole model's state."""
    shard = max(2, 48 // ranks) * _MIB
    return [Shape(weights=shard, state=2 * ranks if rank == whole else 2) for rank in range(ranks)]
