"""How long collectives over the data center's network took, and how long TensorCores waited.

Source of the rules: ``xprof/convert/xspace_to_dcn_slack_analysis.cc`` of openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from peakline.xprof.megascale_stats.ops import Run

STALLS = ("send", "send-done", "recv", "recv-done")
Times = tuple[int, int, int]
_PS_OF_RECV = 10**12
"""XProf divides what a receive took by 10^6 once more than the others."""


@dataclass
class Transfer:
    """One exchange: times in ps, ``slack_ps`` what other work had of it, ``stalls`` how long the
    TensorCore was held by each of its ops, ``stall_ps`` by all.
    """

    rendezvous: str
    transfer_type: str
    send_op: str
    recv_op: str
    start_ps: int
    done_ps: int
    end_ps: int
    slack_ps: int
    stall_ps: int
    stalls: dict[str, int]
    sent_bytes: int


@dataclass
class Summary:
    """Means of a rendezvous' transfers in µs; XProf's are whole numbers."""

    rendezvous: str
    transfer_type: str = ""
    send_op: str = ""
    recv_op: str = ""
    sent_bytes: int = 0
    occurrences: int = 0
    slack_us: float = 0
    stall_us: float = 0
    observed_us: float = 0
    stalls_us: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STALLS, 0.0))
    host_us: float = 0
    host_events: int = 0


@dataclass
class _State:
    """What is known of a rendezvous while its ops run."""

    start_ps: int | None = None
    transfer_type: str = ""
    send_op: str = ""
    group: int = 0
    overlap_ps: int = 0
    stall_ps: int = 0
    stalls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STALLS, 0))


def exact(run: Run) -> Times:
    """When an execution began, how long it took, and when it ended, in ps."""
    return run.start_ps, run.end_ps - run.start_ps, run.end_ps


def cut_to_ns(run: Run, zero_ps: int) -> Times:
    """As `exact`, on the file's clock as XProf reads it: in whole ns, made of numbers that hold no
    more than 53 bits, which since 1970 are 256 ns apart.
    """
    line_ns = float((run.line_ps + zero_ps) // 1000)
    start = int(line_ns + (run.start_ps - run.line_ps) / 1e3)
    took = (run.end_ps - run.start_ps) // 1000
    return start * 1000, took * 1000, int(start + (run.end_ps - run.start_ps) / 1e3) * 1000


def transfers_of(runs: Iterable[Run], times: Callable[[Run], Times] = exact) -> Iterator[Transfer]:
    """The exchanges of one TensorCore, from each send to the end of the receive.

    ``runs`` are in order of time, which ``times`` reads.
    """
    states: dict[str, _State] = {}
    names: dict[int, str] = {}
    groups: dict[str, int] = {}
    seen = 0
    """What all ops have taken so far: what one saw of that is the difference."""
    for run in runs:
        op = run.op
        if op.rendezvous is not None:
            names[op.channel] = op.rendezvous
        name = names.get(op.channel)
        if name is None:
            # Its send or receive was not recorded.
            continue
        state = states.setdefault(name, _State(overlap_ps=seen))
        start, took, end = times(run)
        state.stall_ps += took
        state.stalls[op.opcode] = run.end_ps - run.start_ps
        if op.opcode == "send":
            state.start_ps, state.send_op = start, op.name
            state.transfer_type = op.transfer_type or ""
            state.overlap_ps, state.stall_ps = seen, took
            state.group = groups.setdefault(name, run.group)
        elif op.opcode == "recv-done" and state.start_ps is not None:
            yield Transfer(
                name, state.transfer_type, state.send_op, op.name, state.start_ps, run.start_ps,
                end, start - state.start_ps - (seen - state.overlap_ps),
                state.stall_ps, dict(state.stalls),
                sent_bytes(op.size, state.group, state.transfer_type),
            )  # fmt: skip
        seen += took


def sent_bytes(size: int, group: int, transfer_type: str) -> int:
    """What goes over the network for a result of ``size`` bytes among ``group`` devices."""
    if not group:
        return 0
    others = group - 1
    sent = {
        "ONE_TO_ONE": float(group * size),
        "ALL_GATHER": others * size / group,
        # What is reduced goes back too.
        "ALL_REDUCE": 2 * (others / group) * size,
        "ALL_TO_ALL": (others / group) * size,
        "REDUCE_SCATTER": float(others * size),
    }
    return int(sent.get(transfer_type, 0.0))


def summed(transfers: Iterable[tuple[Transfer, int | None]], *, compatible: bool) -> list[Summary]:
    """The means by rendezvous. The second of a pair is how long after the receive began the host
    was done, in ps.
    """
    result: dict[str, Summary] = {}
    for one, host_ps in transfers:
        total = result.setdefault(one.rendezvous, Summary(one.rendezvous))
        total.transfer_type, total.sent_bytes = one.transfer_type, one.sent_bytes
        total.send_op, total.recv_op = one.send_op, one.recv_op
        total.occurrences += 1
        if compatible:
            _add_cut(total, one)
            continue
        total.slack_us += one.slack_ps / 1e6
        total.stall_us += one.stall_ps / 1e6
        total.observed_us += (one.end_ps - one.start_ps) / 1e6
        for stall in STALLS:
            total.stalls_us[stall] += one.stalls[stall] / 1e6
        if host_ps is not None:
            total.host_us += host_ps / 1e6
            total.host_events += 1
    for total in result.values():
        _divide(total, total.occurrences, whole=compatible)
        if total.host_events:
            total.host_us /= total.host_events
    return list(result.values())


def _add_cut(total: Summary, one: Transfer) -> None:
    """Add what XProf has of a transfer: whole µs."""
    total.slack_us += _unsigned(one.slack_ps) // 10**6
    total.stall_us += one.stall_ps // 10**6
    # Both are times since 1970, in numbers that hold no more than 53 bits.
    total.observed_us += int(one.end_ps // 1000 / 1e3) - int(one.start_ps // 1000 / 1e3)
    for stall in STALLS:
        unit = _PS_OF_RECV if stall == "recv" else 10**6
        total.stalls_us[stall] += one.stalls[stall] // unit


def _unsigned(number: int) -> int:
    return number % 2**64


def _divide(total: Summary, by: int, *, whole: bool) -> None:
    """Make means of sums, or sums of means where ``by`` is below 1."""

    def mean(value: float) -> float:
        return float(int(value / by)) if whole else value / by

    total.slack_us, total.stall_us = mean(total.slack_us), mean(total.stall_us)
    total.observed_us = mean(total.observed_us)
    total.stalls_us = {stall: mean(value) for stall, value in total.stalls_us.items()}


def combined(hosts: Sequence[Sequence[Summary]], *, compatible: bool) -> list[Summary]:
    """The means of all hosts together, each host's as often as it stands for a transfer."""
    result: dict[str, Summary] = {}
    for host in hosts:
        for one in host:
            total = result.setdefault(one.rendezvous, Summary(one.rendezvous))
            times = one.occurrences
            total.transfer_type, total.sent_bytes = one.transfer_type, one.sent_bytes
            total.send_op, total.recv_op = one.send_op, one.recv_op
            total.occurrences += times
            total.slack_us += one.slack_us * times
            total.stall_us += one.stall_us * times
            total.observed_us += one.observed_us * times
            for stall in STALLS:
                total.stalls_us[stall] += one.stalls_us[stall] * times
            total.host_us += one.host_us * one.host_events
            total.host_events += one.host_events
    for total in result.values():
        _divide(total, total.occurrences, whole=compatible)
        if total.host_events:
            total.host_us /= total.host_events
    return list(result.values())


def host_delays(
    transfers: Iterable[Transfer], spans: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[tuple[Transfer, int | None]]:
    """Each transfer with how long after its receive began the host was done, in ps.

    ``spans`` is what the host did for a core, by rendezvous, in order of time: of what overlaps a
    transfer the first counts, and each once.
    """
    places = dict.fromkeys(spans, 0)
    for one in transfers:
        own = spans.get(one.rendezvous, ())
        at = places.get(one.rendezvous, 0)
        while at < len(own) and own[at][1] < one.start_ps:
            at += 1
        result: int | None = None
        if at < len(own) and own[at][0] <= one.end_ps:
            result = own[at][1] - one.done_ps
            at += 1
        places[one.rendezvous] = at
        yield one, result
