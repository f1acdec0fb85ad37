"""Snapshots of PyTorch's caching allocator as tables."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from peakline.errors import InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import ReportingReader
from peakline.formats.torch_snapshot.events import DeviceHistory, behind, events_table, oom_table
from peakline.formats.torch_snapshot.segments import read_segments
from peakline.formats.torch_snapshot.stacks import Stacks
from peakline.formats.torch_snapshot.trace import UNKNOWN, Blocks, Trace, follow, read_trace
from peakline.formats.torch_snapshot.unpickle import Bad, dicts, integers, load_plain
from peakline.tables.columns import Columns
from peakline.tables.event_rules import CACHING, EventRules
from peakline.tables.reader import Warnings

HOST = "host"
"""The allocator of pinned host memory; a device's is ``cuda:0`` and so on, as PyTorch names it."""

MOST_DEVICES = 1024
"""PyTorch numbers the devices of a process in eight bits (``c10/core/Device.h``: DeviceIndex); a
few bytes of a list that names others stand for a whole history each."""

_SETTINGS = (
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "max_split_size",
    "garbage_collection_threshold", "expandable_segments", "roundup_power2_divisions",
)  # fmt: skip
_LONGEST_SETTING = 10_000

_TABLES = frozenset(("segments", "blocks", "stacks", "allocator_events", "oom_reports"))
_TRACES = (("device_traces", "segments"), ("host_traces", "host_segments"))


class TorchSnapshotReader(ReportingReader):
    """One pickle of ``torch.cuda.memory._dump_snapshot``, of any PyTorch release.

    Buffers that were live before the history begins are allocations at time 0, so that they
    are part of every sum; ``(before profile)`` is their op where nothing records who allocated. A
    free counts from where it was requested, as PyTorch counts allocated memory; it is ``deferred``
    where another stream still used the block, and ``returned_sequence`` is then from where on
    the block could be used again. Segments taken from the device or given back are
    ``expansion`` rows with the action as ``region_type``.

    Raises InputError for a pickle that calls code or holds something else.
    """

    __retained__ = "_file _stacks _allocators _segments _devices _tables allocator_settings"

    tables = _TABLES
    event_rules = EventRules(allocator_of=lambda _: CACHING)

    def __init__(self, file: SourceFile, form: str = "torch_snapshot") -> None:
        super().__init__(file, form)
        loaded = [load_plain(file)]
        self._trailing = loaded[0][1]
        try:
            # The content goes where it is read, and is gone afterwards.
            self._take(loaded.pop()[0], file.buffer.size)
        except Bad as error:
            raise InputError(f"{file.path}: no memory snapshot of PyTorch: {error}") from None
        self._tables: dict[str, Columns] = {}

    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        del columns  # all are at hand
        if table not in self._tables:
            made: dict[str, Callable[[], Columns]] = {
                "segments": lambda: self._segments.table(self._allocators),
                "blocks": self._segments.blocks,
                "stacks": self._stacks.table,
                "allocator_events": lambda: events_table(
                    self._devices, self._allocators, self._stacks.callers()
                ),
                "oom_reports": lambda: oom_table(
                    self._devices, self._allocators, self._stacks.callers()
                ),
            }
            self._tables[table] = made[table]()
        return self._tables[table]

    def duration_ps(self) -> int:
        """From the first entry of the history to the last."""
        times = self._table("allocator_events", None).array("time_ps")
        return int(times.max(initial=0))

    def _take(self, content: Any, file_bytes: int) -> None:
        """Turn the content into columns, and let go of it."""
        if isinstance(content, list):
            # Before there was a history, a snapshot was the list of its segments.
            content = {"segments": content}
        if not isinstance(content, dict) or not (content.keys() & {"segments", "device_traces"}):
            raise Bad(_what(content))
        self._stacks = Stacks()
        listed = [
            (name, n, trace)
            for name, _ in _TRACES
            for n, trace in enumerate(_lists(content.get(name), name))
        ]
        # Each entry takes bytes of the file, unless lists are shared.
        if sum(len(trace) for _, _, trace in listed if isinstance(trace, list)) > file_bytes:
            raise Bad("device traces share their entries")
        traces = [(name, n, dicts(trace, f"{name!r}")) for name, n, trace in listed]
        segments = dicts(content.get("segments"), "'segments'")
        pinned = dicts(content.get("host_segments"), "'host_segments'")
        if segments and "total_size" not in segments[0]:
            raise Bad(_what(segments))
        owner = np.concatenate(
            [integers(segments, "device", 0), np.full(len(pinned), -1, np.int64)]
        )
        numbers = {-1 if name == "host_traces" else n for name, n, entries in traces if entries}
        devices = sorted(numbers | set(owner.tolist()))
        if len(devices) > MOST_DEVICES:
            raise Bad(f"it has {len(devices):,} devices, {MOST_DEVICES:,} at most are read")
        self._allocators = [HOST if device == -1 else f"cuda:{device}" for device in devices]
        self._segments = read_segments(
            [*segments, *pinned],
            np.searchsorted(devices, owner).astype(np.int32),
            self._stacks,
            file_bytes,
        )
        history: dict[int, list[dict[Any, Any]]] = {device: [] for device in devices}
        for name, n, entries in traces:
            if entries:
                history[-1 if name == "host_traces" else n] += entries
        read = [read_trace(entries, self._stacks) for entries in history.values()]
        self._stacks.release()
        self.allocator_settings = _settings(content.get("allocator_settings"))
        divisions = self.allocator_settings.get("roundup_power2_divisions")
        self._devices = [
            self._device(number, trace, divisions if isinstance(divisions, dict) else {})
            for number, trace in enumerate(read)
        ]

    def _device(self, number: int, trace: Trace, divisions: dict[Any, Any]) -> DeviceHistory:
        segments = self._segments
        mine = segments.allocator[segments.block_segment] == number
        blocks = Blocks(
            segments.block_address[mine],
            segments.block_size[mine],
            segments.block_requested[mine],
            segments.block_state[mine],
            segments.stream[segments.block_segment[mine]],
            segments.stack[mine],
        )
        pool = int(segments.total[segments.allocator == number].sum())
        return DeviceHistory(trace, blocks, follow(trace, blocks, pool, divisions), divisions)

    def _report(self, warnings: Warnings) -> None:
        segments, add = self._segments, warnings.add
        traces = [device.trace for device in self._devices]
        unknown = sum(int((trace.code == UNKNOWN).sum()) for trace in traces)
        timeless = sum(trace.time_us.size for trace in traces if not trace.time_us.any())
        late = sum(behind(trace.time_us) for trace in traces)
        unexplained = sum(device.history.unexplained for device in self._devices)
        add("trailing_bytes", "bytes after the end of the pickle, not read", self._trailing)
        add(
            "unknown_states",
            "blocks in a state of an unknown name, taken as free",
            segments.unknown_states,
        )
        add(
            "segment_mismatch",
            "segments of another size than the sum of the blocks",
            segments.uncovered,
        )
        add(
            "unknown_actions",
            "entries of the history with an action of an unknown name, left out",
            unknown,
        )
        add("no_times", "entries of the history without a time", timeless)
        add(
            "times_out_of_order",
            "entries of the history with an earlier time than one before",
            late,
        )
        add(
            "history_mismatch",
            "blocks whose last entry in the history contradicts the state in the snapshot",
            unexplained,
        )


def _lists(value: object, what: str) -> list[Any]:
    """A list of traces; a single trace is a list of one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Bad(f"{what!r} is no list")
    return [value] if value and isinstance(value[0], dict) else value


def _settings(result: object) -> dict[str, Any]:
    """The settings that decide where blocks go, as far as they are what PyTorch writes."""
    if not isinstance(result, dict):
        return {}
    kinds = bool, int, float, str, dict
    known = {name: result[name] for name in _SETTINGS if isinstance(result.get(name), kinds)}
    return {
        name: value
        for name, value in known.items()
        if not isinstance(value, str | dict) or len(value) <= _LONGEST_SETTING
    }


def _what(content: object) -> str:
    """What else a pickle holds."""
    if isinstance(content, list) and content and isinstance(content[0], dict):
        return f"a list of dicts with {_keys(content[0])}"
    if isinstance(content, dict):
        return f"a dict with {_keys(content)}"
    return f"a {type(content).__name__}"


def _keys(content: dict[Any, Any]) -> str:
    names = [key if isinstance(key, str) else type(key).__name__ for key in [*content][:5]]
    return ", ".join(name[:40] for name in names) or "nothing in it"
