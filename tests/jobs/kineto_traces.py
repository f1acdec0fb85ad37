"""Writes what a simulated rank did as a trace of PyTorch's profiler, in the layout of Kineto.

Three forms: ``2.13`` (groups and sequence numbers of collectives), ``2.8`` (groups, no sequence
numbers) and ``2023`` (neither groups nor sizes, whole microseconds since the epoch).
"""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.jobs.machine import (
    AUTOGRAD,
    COMPUTE_STREAM,
    DTYPES,
    RECV,
    SEND,
    Collective,
    Group,
    HostEvent,
    Kernel,
    Machine,
    Rank,
)

BASE_NS = 1_790_857_026_000_000_000
"""``baseTimeNanoseconds``: what the times of a file count from, in its newer forms."""
EPOCH_NS = 1_795_906_347_710_661_595
"""When the simulated job begins, on a right clock."""
FORMS = ("2.13", "2.8", "2023")
_RANKS_WRITTEN = 30
_CAPACITY = 85_014_872_064


@dataclass(frozen=True)
class Clock:
    """A host's clock: how far it is off when the job begins, and how much faster it runs."""

    offset_ns: int = 0
    drift_ppm: float = 0.0

    def reads(self, nanoseconds: int) -> int:
        """What it shows at a true time."""
        return nanoseconds + self.offset_ns + round(nanoseconds * self.drift_ppm * 1e-6)


@dataclass(frozen=True)
class Writing:
    """How the traces are written: form, flows, window, clock of the rank.

    Steps ``first`` to ``last`` are recorded. ``stop_ns`` ends the recording before its last step
    does, at a true time. ``lost`` are numbers of world collectives whose kernel has no record.
    """

    form: str = "2.8"
    flows: bool = True
    shapes: bool = True
    first: int = 0
    last: int = 1_000_000
    clock: Clock = Clock()
    stop_ns: int | None = None
    lost: frozenset[int] = frozenset()


def host_of(machine: Machine, rank: int) -> str:
    """The name of a rank's host."""
    return f"node{rank // machine.per_host:03d}"


def pid_of(rank: int) -> int:
    """The process of a rank."""
    return 4_000 + 17 * rank


def write_trace(path: Path, machine: Machine, rank: Rank, writing: Writing) -> None:
    """Write a rank's trace, packed where the name ends in ``.gz``."""
    text = trace_text(machine, rank, writing, path.name.removesuffix(".gz"))
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data, 1, mtime=0) if path.suffix == ".gz" else data)


def trace_text(machine: Machine, rank: Rank, writing: Writing, name: str) -> str:
    """A rank's trace."""
    head = _head(machine, rank, writing)
    events = ",\n".join(_Events(machine, rank, writing).lines())
    return f'{head}\n  "traceEvents": [\n{events}\n  ],\n  "traceName": "./log/{name}"\n}}\n'


def _head(machine: Machine, rank: Rank, writing: Writing) -> str:
    old = writing.form == "2023"
    info: dict[str, object] = {
        "backend": "nccl", "rank": rank.number, "world_size": len(machine.ranks)
    }  # fmt: skip
    if not old:
        groups = [group for group in machine.groups if rank.number in group.ranks]
        info["pg_count"] = len(groups)
        info["pg_config"] = [
            {
                "pg_name": group.name, "pg_desc": group.description,
                "backend_config": "cuda:nccl", "pg_size": len(group.ranks),
                "ranks": list(group.ranks),
            }
            for group in groups
        ]  # fmt: skip
        info["nccl_version"] = "2.27.5"
    devices = [
        {
            "id": device, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": _CAPACITY,
            "computeMajor": 9, "computeMinor": 0, "maxThreadsPerBlock": 1024, "numSms": 132,
        }
        for device in range(min(machine.per_host, len(machine.ranks)))
    ]  # fmt: skip
    keys: list[tuple[str, object]] = [("schemaVersion", 1), ("deviceProperties", devices)]
    if not old:
        keys += [("cupti_version", 26), ("cuda_runtime_version", 12080)]
        keys += [("cuda_driver_version", 12080)]
    keys += [("distributedInfo", info), ("record_shapes", int(writing.shapes))]
    if not old:
        digest = zlib.crc32(f"{machine.seed} {rank.number}".encode())
        keys += [("trace_id", f"{digest:032X}"), ("host_name", host_of(machine, rank.number))]
        keys += [("displayTimeUnit", "ms"), ("baseTimeNanoseconds", BASE_NS)]
    lines = "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in keys)
    return "{\n" + lines.rstrip("\n")


def group_ranks_text(ranks: tuple[int, ...]) -> str:
    """The members as PyTorch writes them: long lists lose their middle."""
    if len(ranks) > _RANKS_WRITTEN:
        head = ", ".join(map(str, ranks[: _RANKS_WRITTEN - 1]))
        return f"[{head}, ..., {ranks[-1]}]"
    return f"[{', '.join(map(str, ranks))}]"


class _Events:
    """The lines of a trace's events."""

    def __init__(self, machine: Machine, rank: Rank, writing: Writing) -> None:
        self.machine, self.rank, self.writing = machine, rank, writing
        self.old = writing.form == "2023"
        self.pid = pid_of(rank.number)
        self.device = rank.number % machine.per_host
        self.steps = range(writing.first, min(writing.last, len(rank.steps) - 1) + 1)
        begin, end = rank.steps[self.steps[0]][0], rank.steps[self.steps[-1]][1]
        self.begin = begin - 200_000
        self.end = max((kernel.end for kernel in rank.kernels), default=0) if end < 0 else end
        self.end = writing.stop_ns or self.end + 150_000
        self.index = 0
        self.texts: dict[int, str] = {}

    def at(self, nanoseconds: int) -> str:
        """A true time as the file writes it."""
        shown = EPOCH_NS + self.writing.clock.reads(nanoseconds)
        if self.old:
            return str(shown // 1000)
        shown -= BASE_NS
        return f"{shown // 1000}.{shown % 1000:03d}"

    def span(self, begin: int, end: int) -> str:
        """``ts`` and ``dur``: the difference of what the clock shows."""
        reads = self.writing.clock.reads
        length = reads(end) - reads(begin)
        if self.old:
            length = (EPOCH_NS + reads(end)) // 1000 - (EPOCH_NS + reads(begin)) // 1000
            return f'"ts": {self.at(begin)}, "dur": {length}'
        return f'"ts": {self.at(begin)}, "dur": {length // 1000}.{length % 1000:03d}'

    def event(self, category: str, name: str, row: tuple[int, int], times: str, args: str) -> str:
        """A complete event."""
        return (
            f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {row[0]}, '
            f'"tid": {row[1]},\n    {times},\n    "args": {{\n      {args}\n    }}\n  }}'
        )

    def lines(self) -> Iterator[str]:
        """All events, in the order of Kineto: host, devices, names of the rows."""
        rank, steps = self.rank, self.steps
        parents: list[HostEvent] = []
        for event in rank.events:
            if event.step in steps and event.start <= self.end:
                yield self.of_host(event, parents)
        if rank.memory:
            yield from self.of_memory()
        written = [kernel for kernel in rank.kernels if self.is_written(kernel)]
        for kernel in rank.kernels:
            if kernel.step in steps and kernel.call[0] <= self.end:
                yield from self.of_launch(kernel)
        for kernel in written:
            yield from self.of_kernel(kernel)
        yield from self.marks_on_device(written)
        yield from self.names({kernel.stream for kernel in written})

    def is_written(self, kernel: Kernel) -> bool:
        """Whether the window has the kernel, from its launch to its end."""
        if kernel.step not in self.steps or kernel.end < 0 or kernel.call[0] > self.end:
            return False
        collective = kernel.collective
        is_world = collective is not None and collective.group.index == 0
        return not (is_world and collective.number in self.writing.lost)

    def of_host(self, event: HostEvent, parents: list[HostEvent]) -> str:
        end = event.end if 0 <= event.end <= self.end else self.end
        thread = self.pid + 37 * (event.thread == AUTOGRAD)
        self.index += 1
        if event.category == "python_function":
            while parents and 0 <= parents[-1].end <= event.start:
                parents.pop()
            parent = str(parents[-1].external) if parents else "null"
            parents.append(event)
            args = f'"Python parent id": {parent}, "Python id": {event.external}'
        elif event.category == "cuda_runtime":
            args = '"cbid": 131, "correlation": 0'
        else:
            args = f'"External id": {event.external}'
            if not self.old:
                args += ', "Record function id": 0'
            dims = event.more.get("dims")
            if dims and self.writing.shapes:
                kinds = json.dumps(["c10::BFloat16"] * len(dims))
                args += f', "Input Dims": {json.dumps(dims)}, "Input type": {kinds}'
            if event.collective is not None:
                args += self.of_collective(event.collective, event.seq, on_host=True)
        args += f', "Ev Idx": {self.index}'
        return self.event(
            event.category, event.name, (self.pid, thread), self.span(event.start, end), args
        )

    def of_collective(self, collective: Collective, seq: int, *, on_host: bool) -> str:
        """What the metadata says of a collective, with a comma before it."""
        if self.old:
            return ', "Input Dims": [[], [], [], [], [], [], []]' if on_host else ""
        number = self.rank.number
        group, kind = collective.group, collective.kinds[number]
        count_in, count_out = collective.elements[number]
        text = (
            f', "Collective name": "{kind.meta}", "In msg nelems": {count_in}, '
            f'"Out msg nelems": {count_out}, "Group size": {len(group.ranks)}, '
            f'"dtype": "{collective.dtype}", "In split size": "[]", "Out split size": "[]"'
            f"{self.of_group(group)}"
        )
        if on_host:
            text += f', "Rank": {group.ranks.index(number)}'
            text += f', "Global rank start": {group.ranks[0]}'
            steps = {after - before for before, after in itertools.pairwise(group.ranks)}
            text += f', "Global rank stride": {min(steps) if len(steps) == 1 else 0}'
            peers = [member for member in collective.members if member != number]
            if kind is SEND:
                text += f', "Dst Rank": {peers[0]}'
            elif kind is RECV:
                text += f', "Src Rank": {peers[0]}'
        if self.writing.form == "2.13":
            label = f"{group.name} {seq} {kind in {SEND, RECV}} {group.ranks}"
            text += f', "Seq": {seq}, "Comms Id": {zlib.crc32(label.encode()) * 2_654_435_761}'
        return text

    def of_group(self, group: Group) -> str:
        if group.index not in self.texts:
            self.texts[group.index] = (
                f', "Process Group Name": "{group.name}", '
                f'"Process Group Description": "{group.description}", '
                f'"Process Group Ranks": "{group_ranks_text(group.ranks)}"'
            )
        return self.texts[group.index]

    def of_launch(self, kernel: Kernel) -> Iterator[str]:
        thread = self.pid + 37 * (kernel.thread == AUTOGRAD)
        is_copy = kernel.name.startswith("Memcpy")
        is_collective = kernel.collective is not None
        name = "cudaLaunchKernelExC" if is_collective else "cudaLaunchKernel"
        number = 430 if is_collective else 211
        if is_copy:
            name, number = "cudaMemcpyAsync", 41
        external = kernel.correlation if self.old else kernel.external
        args = f'"External id": {external}, "cbid": {number}, "correlation": {kernel.correlation}'
        times = self.span(*kernel.call)
        yield self.event("cuda_runtime", name, (self.pid, thread), times, args)
        if self.writing.flows and not self.old:
            yield self.flow("s", kernel.correlation, (self.pid, thread), kernel.call[0], "")

    def flow(self, phase: str, number: int, row: tuple[int, int], at: int, more: str) -> str:
        return (
            f'  {{\n    "ph": "{phase}", "id": {number}, "pid": {row[0]}, "tid": {row[1]}, '
            f'"ts": {self.at(at)},\n    "cat": "ac2g", "name": "ac2g"{more}\n  }}'
        )

    def of_kernel(self, kernel: Kernel) -> Iterator[str]:
        row = (self.device, kernel.stream)
        external = kernel.correlation if self.old else kernel.external
        args = (
            f'"External id": {external}, "device": {self.device}, "context": 1, '
            f'"stream": {kernel.stream}, "correlation": {kernel.correlation}'
        )
        name = kernel.name
        if name.startswith("Memcpy"):
            args += ', "bytes": 4, "memory bandwidth (GB/s)": 0.002'
            yield self.event("gpu_memcpy", name, row, self.span(kernel.start, kernel.end), args)
        else:
            block = 256
            if kernel.collective is not None:
                name, block = self.collective_kernel(kernel.collective, name), 512
            warps = round(kernel.grid * block / 32 / 132, 6)
            args += (
                ', "queued": 0, "registers per thread": 64, "shared memory": 16384, '
                f'"blocks per SM": {round(kernel.grid / 132, 6)}, "warps per SM": {warps}, '
                f'"grid": [{kernel.grid}, 1, 1], "block": [{block}, 1, 1], '
                '"est. achieved occupancy %": 25'
            )
            if kernel.collective is not None:
                args += self.of_collective(kernel.collective, kernel.seq, on_host=False)
            yield self.event("kernel", name, row, self.span(kernel.start, kernel.end), args)
        if self.writing.flows and not self.old:
            yield self.flow("f", kernel.correlation, row, kernel.start, ', "bp": "e"')

    def collective_kernel(self, collective: Collective, device: str) -> str:
        """The kernel's name: NCCL's of the form's time."""
        letters = DTYPES[collective.dtype][1]
        if self.old:
            coll, _, op = device.partition("_")
            kind = {"f32": "float", "bf16": "__nv_bfloat16"}[letters]
            return (
                f"ncclKernel_{coll}_RING_LL_{op or 'Sum'}_{kind}"
                "(ncclDevComm*, unsigned long, ncclWork*)"
            )
        if "_" in device:
            device += f"_{letters}"
        tail = "" if device == "SendRecv" else "_RING_LL"
        return f"ncclDevKernel_{device}{tail}(ncclDevKernelArgsStorage<4096ul>)"

    def of_memory(self) -> Iterator[str]:
        begin = self.rank.steps[self.steps[0]][0]
        for address, (at, size, total) in enumerate(self.rank.memory):
            if begin <= at <= self.end:
                yield (
                    f'  {{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", '
                    f'"name": "[memory]", "pid": {self.pid}, "tid": {self.pid}, '
                    f'"ts": {self.at(at)},\n    "args": {{\n      '
                    f'"Total Reserved": {total}, "Total Allocated": {total}, "Bytes": {size}, '
                    f'"Device Id": {self.device}, "Device Type": 1, '
                    f'"Addr": {140_000_000_000_000 + 4096 * address}\n    }}\n  }}'
                )

    def marks_on_device(self, kernels: list[Kernel]) -> Iterator[str]:
        """Annotations of the host as the profiler repeats them over the kernels they launched."""
        if self.old:
            return
        marks = {event.step: event for event in self.rank.events
                 if event.name.startswith("ProfilerStep")}  # fmt: skip
        for step in self.steps:
            own = [k for k in kernels if k.step == step and k.stream == COMPUTE_STREAM]
            if own and step in marks:
                times = self.span(own[0].start - 1, own[-1].end + 1)
                yield self.event(
                    "gpu_user_annotation", marks[step].name, (self.device, COMPUTE_STREAM), times,
                    f'"External id": {marks[step].external}',
                )  # fmt: skip
        names = {event.external: event.name for event in self.rank.events
                 if event.name.startswith("nccl:")}  # fmt: skip
        for kernel in kernels:
            if kernel.collective is not None:
                external = kernel.external + 1
                yield self.event(
                    "gpu_user_annotation", names[external], (self.device, kernel.stream),
                    self.span(kernel.start - 1, kernel.end + 1), f'"External id": {external}',
                )  # fmt: skip

    def names(self, streams: set[int]) -> Iterator[str]:
        """Names of rows, the span of the profile and its end."""
        pid, at = self.pid, self.at(self.begin)

        def meta(kind: str, row: tuple[object, object], key: str, value: object) -> str:
            return (
                f'  {{\n    "ph": "M", "name": "{kind}", "pid": {row[0]}, "tid": {row[1]}, '
                f'"ts": {at},\n    "args": {{\n      "{key}": {json.dumps(value)}\n    }}\n  }}'
            )

        yield meta("process_name", (pid, 0), "name", "python")
        yield meta("process_labels", (pid, 0), "labels", "CPU")
        yield meta("process_sort_index", (pid, 0), "sort_index", pid)
        yield meta("process_name", (self.device, 0), "name", "python")
        yield meta("process_labels", (self.device, 0), "labels", f"GPU {self.device}")
        yield meta("process_sort_index", (self.device, 0), "sort_index", 5_000_000 + self.device)
        for stream in sorted(streams):
            yield meta("thread_name", (self.device, stream), "name", f"stream {stream} ")
        yield meta("thread_name", (pid, pid), "name", f"thread {pid} (python)")
        yield meta("thread_name", (pid, pid + 37), "name", f"thread {pid + 37} (pt_autograd_0)")
        yield self.event(
            "Trace", "PyTorch Profiler (0)", ('"Spans"', '"PyTorch Profiler"'),  # type: ignore[arg-type]
            self.span(self.begin, self.end), '"Op count": 0',
        )  # fmt: skip
        yield (
            f'  {{\n    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", '
            f'"ts": {self.at(self.end)}\n  }}'
        )
