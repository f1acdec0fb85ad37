"""Ranks, their hosts, streams and collectives, simulated event by event, in whole nanoseconds.

A rank's program is a generator: it launches kernels ahead of the device and yields a kernel where
its host waits for it. A stream runs its kernels in the order of their launches, each once the
kernels that it comes after have ended. A collective begins to move data when its last member has
arrived, and ends on every member some microseconds apart.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAIN, AUTOGRAD = 0, 1
"""Threads of a rank's host."""
COMPUTE_STREAM = 7
_LAUNCH_NS, _REACH_NS = 4_000, 3_000
_BEFORE_LAUNCH_NS, _AFTER_LAUNCH_NS = 5_000, 2_000
_LATENCY_NS = 25_000
_WITHIN_HOST, _BETWEEN_HOSTS = 180.0, 40.0
"""Bytes a nanosecond that a link of a group carries."""
_END_SKEW_NS = 6_000

Program = Generator["Kernel", None, None]


@dataclass(frozen=True)
class Kind:
    """A kind of collective in the words of each layer that writes it down."""

    call: str
    meta: str
    annotation: str
    device: str
    shares: str
    """What a member sends of the buffer: ``twice`` (n-1)/n, ``once`` (n-1)/n, or the ``whole``."""


ALL_REDUCE = Kind("c10d::allreduce_", "allreduce", "all_reduce", "AllReduce_Sum", "twice")
ALL_GATHER = Kind(
    "c10d::_allgather_base_", "_allgather_base", "_all_gather_base", "AllGather", "once"
)
REDUCE_SCATTER = Kind(
    "c10d::_reduce_scatter_base_", "_reduce_scatter_base", "_reduce_scatter_base",
    "ReduceScatter_Sum", "once",
)  # fmt: skip
SEND = Kind("c10d::send", "send", "send", "SendRecv", "whole")
RECV = Kind("c10d::recv_", "recv", "recv", "SendRecv", "whole")
DTYPES = {"Float": (4, "f32"), "BFloat16": (2, "bf16")}


@dataclass(eq=False)
class Group:
    """A process group."""

    index: int
    name: str
    description: str
    ranks: tuple[int, ...]
    crosses_hosts: bool
    stream: int
    """Of its collectives, on every member; the two after it are of its sends and receives."""


@dataclass(eq=False, slots=True)
class Kernel:
    """Work on a stream. ``start`` and ``end`` are negative until they are known."""

    rank: int
    step: int
    name: str
    stream: int
    launched: int
    duration: int
    after: tuple[Kernel, ...]
    grid: int
    correlation: int
    external: int
    thread: int
    call: tuple[int, int]
    collective: Collective | None = None
    seq: int = 0
    start: int = -1
    end: int = -1
    waiting: list[tuple[int, int]] = field(default_factory=list)


@dataclass(eq=False)
class Collective:
    """One collective of a group, or one send and its receive; a number per pair then.

    ``number`` counts those of the group by order of the communicator. ``kinds`` and ``elements``
    (in, out) are by rank. ``transfer`` is what it takes from the last arrival on.
    """

    group: Group
    number: int
    members: tuple[int, ...]
    transfer: int
    kinds: dict[int, Kind] = field(default_factory=dict)
    elements: dict[int, tuple[int, int]] = field(default_factory=dict)
    dtype: str = "Float"
    arrived: dict[int, Kernel] = field(default_factory=dict)
    step: int = 0

    @property
    def is_pair(self) -> bool:
        """Whether it is a send and its receive."""
        return self.kinds[min(self.kinds)] in {SEND, RECV}


@dataclass(slots=True)
class HostEvent:
    """A call, op, function or mark of a rank's host; ``end`` is negative while it runs."""

    category: str
    name: str
    thread: int
    start: int
    end: int
    external: int
    step: int
    more: Mapping[str, Any]
    collective: Collective | None = None
    seq: int = 0


class Rank:
    """What a rank did, and the means of its program: times on the true clock."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine = machine
        self.number = number
        self.now = 0
        self.step = 0
        self.events: list[HostEvent] = []
        self.kernels: list[Kernel] = []
        self.steps: list[tuple[int, int]] = []
        self.memory: list[tuple[int, int, int]] = []
        """(time, bytes, total) of allocations and releases on the device."""
        self.total_bytes = 0
        self.streams: dict[int, deque[Kernel]] = {}
        self.free_at: dict[int, int] = {}
        self.counts: dict[tuple[int, ...], int] = {}
        self.draw = random.Random(number)
        self.noise = 0.0
        self.correlation = 1000
        self.external = 0

    def begin_step(self, step: int, noise: float) -> None:
        """Go to a step, whose noise does not depend on what was drawn before."""
        self.step = step
        self.noise = noise
        self.draw = random.Random(hash((self.machine.seed, self.number, step)))
        self.steps.append((self.now, -1))

    def noisy(self, nanoseconds: float) -> int:
        """The time with the noise of this draw."""
        return max(1, int(nanoseconds * math.exp(self.draw.gauss(0.0, self.noise))))

    def host(
        self, name: str, nanoseconds: int, category: str = "cpu_op", thread: int = MAIN, **more: Any
    ) -> HostEvent:
        """Spend time of the host in an event."""
        event = self.open(name, category, thread, **more)
        self.now += nanoseconds
        event.end = self.now
        return event

    def open(
        self, name: str, category: str = "cpu_op", thread: int = MAIN, **more: Any
    ) -> HostEvent:
        """Begin an event, which ends where its ``end`` is set."""
        self.external += 1
        event = HostEvent(category, name, thread, self.now, -1, self.external, self.step, more)
        self.events.append(event)
        return event

    def close(self, event: HostEvent) -> None:
        """End an event now."""
        event.end = self.now

    def launch(
        self,
        op: str,
        name: str,
        nanoseconds: float,
        *,
        grid: int = 128,
        thread: int = MAIN,
        after: tuple[Kernel, ...] = (),
        **more: Any,
    ) -> Kernel:
        """Launch a kernel on the compute stream, from an op."""
        event = self.open(op, "cpu_op", thread, **more)
        self.now += _BEFORE_LAUNCH_NS
        kernel = self._launched(name, COMPUTE_STREAM, self.noisy(nanoseconds), after, grid, thread)
        kernel.external = event.external
        self.now += _AFTER_LAUNCH_NS
        self.close(event)
        self.machine.enqueue(self, kernel)
        return kernel

    def _launched(
        self, name: str, stream: int, duration: int, after: tuple[Kernel, ...], grid: int,
        thread: int,
    ) -> Kernel:  # fmt: skip
        self.correlation += 1
        begin = self.now
        self.now += _LAUNCH_NS
        kernel = Kernel(
            self.number, self.step, name, stream, self.now + _REACH_NS, duration, after, grid,
            self.correlation, 0, thread, (begin, self.now),
        )  # fmt: skip
        self.kernels.append(kernel)
        return kernel

    def communicate(
        self,
        group: Group,
        kind: Kind,
        elements: tuple[int, int],
        *,
        after: tuple[Kernel, ...] = (),
        dtype: str = "Float",
        peer: int | None = None,
        thread: int = MAIN,
    ) -> Kernel:
        """Launch a collective of a group, or a send to or receive from a peer of it."""
        pair = () if peer is None else tuple(sorted((self.number, peer)))
        key = (group.index, *pair)
        if kind is SEND or kind is RECV:
            key += (self.number if kind is SEND else peer or 0,)
        number = self.counts[key] = self.counts.get(key, -1) + 1
        own = (group.index, -1) if pair else key
        if pair:
            # PyTorch counts the sends and receives of a process, whoever the peer is.
            self.counts[own] = self.counts.get(own, -1) + 1
        event = self.open(kind.call, "cpu_op", thread)
        self.now += 2_000
        collective = self.machine.collective(group, key, number, pair, kind, max(elements), dtype)
        collective.kinds[self.number] = kind
        collective.elements[self.number] = elements
        params = self.open("record_param_comms", "cpu_op", thread)
        params.collective, params.seq = collective, self.counts[own]
        self.now += 1_000
        label = f"nccl:{kind.annotation}"
        if kind is SEND:
            label += f" {group.ranks.index(self.number)}->{group.ranks.index(peer or 0)}"
        elif kind is RECV:
            label += f" {group.ranks.index(self.number)}<-{group.ranks.index(peer or 0)}"
        mark = self.open(label, "user_annotation", thread)
        stream = group.stream
        if pair:
            stream += 1 + (self.number > (peer or 0))
        grid = 24 if kind.shares == "whole" else 32
        kernel = self._launched(kind.device, stream, 0, after, grid, thread)
        kernel.collective, kernel.seq = collective, params.seq
        kernel.external = params.external
        self.close(mark)
        self.now += 1_000
        self.close(params)
        self.now += 1_000
        self.close(event)
        self.machine.enqueue(self, kernel)
        return kernel

    def allocate(self, size: int) -> None:
        """Allocate device memory, or release it (a negative size)."""
        self.total_bytes += size
        self.memory.append((self.now, size, self.total_bytes))


class Machine:
    """All ranks, their groups and collectives."""

    def __init__(self, ranks: int, seed: int, per_host: int) -> None:
        self.seed = seed
        self.per_host = per_host
        self.ranks = [Rank(self, number) for number in range(ranks)]
        self.groups: list[Group] = []
        self.slowness: list[tuple[frozenset[int], bool, float]] = []
        """Of transfers with one of these ranks, between hosts or within one: how much longer."""
        self.collectives: dict[tuple[tuple[int, ...], int], Collective] = {}
        self._ready: deque[tuple[int, int]] = deque()
        self._programs: dict[int, Program] = {}
        self._blocked: dict[int, Kernel] = {}

    def add_group(self, description: str, ranks: tuple[int, ...]) -> Group:
        """Make a process group; names count up, as PyTorch's do."""
        crosses = len({rank // self.per_host for rank in ranks}) > 1
        before = list(dict.fromkeys(group.description for group in self.groups))
        place = before.index(description) if description in before else len(before)
        index = len(self.groups)
        group = Group(index, str(index), description, ranks, crosses, 20 + 4 * place)
        self.groups.append(group)
        return group

    def collective(
        self, group: Group, key: tuple[int, ...], number: int, pair: tuple[int, ...], kind: Kind,
        elements: int, dtype: str,
    ) -> Collective:  # fmt: skip
        """The collective of a number, made by the first member that launches it."""
        if (key, number) not in self.collectives:
            members = pair or group.ranks
            draw = random.Random(hash((self.seed, *key, number, 77)))
            size = elements * DTYPES[dtype][0]
            share = 1.0
            if kind.shares != "whole":
                share = (len(members) - 1) / len(members) * (1 + (kind.shares == "twice"))
            crosses = group.crosses_hosts
            if pair:
                crosses = pair[0] // self.per_host != pair[1] // self.per_host
            speed = _BETWEEN_HOSTS if crosses else _WITHIN_HOST
            lasts = _LATENCY_NS + size * share / speed
            for ranks, between, times in self.slowness:
                if between == crosses and not ranks.isdisjoint(members):
                    lasts *= times
            transfer = int(lasts * math.exp(draw.gauss(0.0, 0.03)))
            self.collectives[key, number] = Collective(
                group, number, members, transfer, dtype=dtype
            )
        return self.collectives[key, number]

    def enqueue(self, rank: Rank, kernel: Kernel) -> None:
        """Put a kernel at the end of its stream."""
        queue = rank.streams.setdefault(kernel.stream, deque())
        queue.append(kernel)
        if len(queue) == 1:
            self._ready.append((rank.number, kernel.stream))

    def run(self, programs: list[Program]) -> None:
        """Run the ranks' programs until they end, or until nothing can go on any more."""
        self._programs = dict(enumerate(programs))
        for number in list(self._programs):
            self._resume(number)
        while self._ready or any(kernel.end >= 0 for kernel in self._blocked.values()):
            while self._ready:
                self._advance(*self._ready.popleft())
            for number, kernel in list(self._blocked.items()):
                if kernel.end >= 0:
                    del self._blocked[number]
                    rank = self.ranks[number]
                    rank.now = max(rank.now, kernel.end)
                    self._resume(number)

    def _resume(self, number: int) -> None:
        for kernel in self._programs[number]:
            if kernel.end < 0:
                self._blocked[number] = kernel
                return
            rank = self.ranks[number]
            rank.now = max(rank.now, kernel.end)

    def _advance(self, number: int, stream: int) -> None:
        """Run the kernels at the head of a stream as far as what they wait for is known."""
        rank = self.ranks[number]
        queue = rank.streams[stream]
        while queue:
            kernel = queue[0]
            if kernel.start < 0:
                start = max(kernel.launched, rank.free_at.get(stream, 0))
                for other in kernel.after:
                    if other.end < 0:
                        other.waiting.append((number, stream))
                        return
                    start = max(start, other.end)
                kernel.start = start
                if kernel.collective is None:
                    self._end(rank, kernel, start + kernel.duration)
                else:
                    self._arrive(kernel.collective, kernel)
            if kernel.end < 0:
                return
            queue.popleft()

    def _arrive(self, collective: Collective, kernel: Kernel) -> None:
        arrived = collective.arrived
        arrived[kernel.rank] = kernel
        collective.step = kernel.step
        if len(arrived) < len(collective.members):
            return
        last = max(other.start for other in arrived.values())
        draw = random.Random(hash((self.seed, collective.group.index, collective.number, 78)))
        for member in collective.members:
            other = arrived[member]
            end = last + collective.transfer + draw.randrange(_END_SKEW_NS)
            self._end(self.ranks[member], other, end)
            if other is not kernel:
                self._ready.append((member, other.stream))

    def _end(self, rank: Rank, kernel: Kernel, end: int) -> None:
        kernel.end = end
        rank.free_at[kernel.stream] = end
        self._ready.extend(kernel.waiting)
        kernel.waiting.clear()
