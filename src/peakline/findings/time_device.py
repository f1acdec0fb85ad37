"""Findings of a device that waits: for the host, for launches, for copies, for other devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.text import time_text
from peakline.timing.step_facts import PARTS, StepFacts

if TYPE_CHECKING:
    from peakline.timing.gaps import Gaps

__all__ = [
    "communication_not_overlapped",
    "host_bound",
    "idle_between_steps",
    "launch_bound",
    "severity_of",
    "time_in_copies",
]

_Array = npt.NDArray[Any]

LAUNCH, MUCH_LAUNCH = 0.05, 0.15
"""Shares of the step time from which launching is told, and is a warning. XProf calls 3 % moderate
and 15 % high; what is under a twentieth nobody would rewrite a program for."""

COMMUNICATION, MUCH_COMMUNICATION = 0.05, 0.15
"""Collectives that no computation hides: XProf's bounds are 3 % and 15 %."""

COPIES, MUCH_COPIES = 0.05, 0.20
"""Copies while the device does not compute: XProf's bounds for output are 5 % and 20 %."""

HOST, MUCH_HOST = 0.10, 0.25
"""The device does nothing while the host computes, or nothing tells why. A few per cent of it are
in every run: reading the loss, writing a log line."""

BETWEEN, MUCH_BETWEEN = 0.05, 0.15
"""The device does nothing between two steps, as a share of the time from step to step: XProf's
bounds for what it cannot name are 3 % and 15 %."""

HOST_BETWEEN = 0.50
"""Without a device the program may do anything between the steps it marks; told of where it is
most of the time and nothing is seen to run, for information only."""

LONG_STALL, LEAST_STALL_PS = 10, 10**9
"""A wait between two steps is a long stall from ten times the median and a millisecond on."""

FEW_STALLS, MOST_STALLED = 0.25, 0.5
"""... told of one by one where at most a quarter of the steps has one before it and together they
are half of all time between the steps."""

_STALLS = 3

_COPIES = ("device_to_device_ps", "device_to_host_ps", "host_to_device_ps")

_OFFLOADED = (
    "Programs of a TPU copy from and to the host what they offloaded to its memory: keep more "
    "weights and activations on the device, recompute them, or begin the copies earlier."
)


def severity_of(share: float, much: float) -> str:
    """A warning from ``much`` on, else for information."""
    return "warning" if share >= much else "info"


def launch_bound(facts: StepFacts, gaps: Gaps) -> Finding | None:
    """The device waits for one piece of work after the other, each launched by the host."""
    lost = _launching(facts, gaps)
    share = int(lost.sum()) / facts.wall_ps if facts.wall_ps else 0.0
    if not facts.has_device or share < LAUNCH:
        return None
    each = int(gaps.count.sum()) / facts.rows
    often = f", {each:.0f} times a step" if each >= 1 else ""
    evidence = _evidence(facts, share, int(lost.sum()), "launch_ps")
    return Finding(
        "launch_bound",
        severity_of(share, MUCH_LAUNCH),
        f"{share:.0%} of the step time the device waits for its next work to be launched{often}",
        evidence | {"gaps_per_step": each, "gaps_ps": int(gaps.ps.sum()) // facts.lanes},
        "Launch less often and more at a time: compile the step as one program (tf.function, "
        "jax.jit, torch.compile), fuse small ops, use CUDA graphs or XLA's command buffers, or "
        "make the batch larger.",
        _by_step(facts, lost, launch_wait_ps=lost, gaps=gaps.count),
    )


def host_bound(facts: StepFacts, gaps: Gaps, for_a_straggler: int) -> Finding | None:
    """The device waits while the host computes, or does what no event tells of.

    What it waits for a slower device (``for_a_straggler``, in ps) is told of as that.
    """
    lost = _waiting(facts) - _launching(facts, gaps)
    whole = max(int(lost.sum()) - for_a_straggler, 0)
    share = whole / facts.wall_ps if facts.wall_ps else 0.0
    if not facts.has_device or share < HOST:
        return None
    is_told = facts.total("host_compute_ps") >= facts.total("idle_ps")
    what = "while the host computes" if is_told else "and no event tells what for"
    trace = "" if is_told else "Profile with the Python tracer to see what the host does then. "
    return Finding(
        "host_bound",
        severity_of(share, MUCH_HOST),
        f"{share:.0%} of the step time the device waits {what}",
        _evidence(facts, share, whole, "host_compute_ps", "idle_ps"),
        f"{trace}Take work out of the loop that calls the device: compile the whole step, read "
        "losses and metrics only now and then (each read waits for the device), and prepare the "
        "next batch on another thread.",
        _by_step(facts, lost, **_columns(facts, "host_compute_ps", "idle_ps")),
    )


def time_in_copies(facts: StepFacts) -> Finding | None:
    """The device waits for copies from or to the host, or from another device."""
    share = facts.share(*_COPIES)
    if not facts.has_device or share < COPIES:
        return None
    most = max(_COPIES, key=facts.total)
    is_tpu = most != "device_to_device_ps" and all("TPU" in name for name in facts.devices)
    advice = {
        "host_to_device_ps": "Copy the next batch while the device computes on this one "
        "(prefetch_to_device, pinned memory, non_blocking=True), or send it in a smaller type "
        "and convert it on the device.",
        "device_to_host_ps": "Read results back less often, and only the numbers that are needed: "
        "every read waits for the device.",
        "device_to_device_ps": "Keep what is used together on one device, and place or shard "
        "tensors so that they need not move in every step.",
    }
    evidence = _evidence(facts, share, facts.total(*_COPIES), *_COPIES)
    return Finding(
        "time_in_copies",
        severity_of(share, MUCH_COPIES),
        f"{share:.0%} of the step time goes to copies, most of it to {PARTS[most]}",
        evidence | {"most": most.removesuffix("_ps")},
        _OFFLOADED if is_tpu else advice[most],
        _by_step(facts, _sum(facts, *_COPIES), **_columns(facts, *_COPIES)),
    )


def communication_not_overlapped(facts: StepFacts, for_a_straggler: int) -> Finding | None:
    """Collectives run while the device computes nothing.

    What they take because of one slow device (``for_a_straggler``, in ps) is told of as that.
    """
    exposed = max(facts.total("communication_ps") - for_a_straggler, 0)
    share = exposed / facts.wall_ps if facts.wall_ps else 0.0
    if not facts.has_device or share < COMMUNICATION:
        return None
    whole = facts.total("communication_total_ps") - for_a_straggler
    hidden = 1 - exposed / whole if whole else 0.0
    parts = ("communication_ps", "communication_total_ps")
    evidence = _evidence(facts, share, exposed, *parts)
    return Finding(
        "communication_not_overlapped",
        severity_of(share, MUCH_COMMUNICATION),
        f"{share:.0%} of the step time goes to collectives that no computation hides "
        f"({hidden:.0%} of their time is hidden)",
        evidence | {"hidden_share": hidden},
        "Start the reduction of each gradient as soon as it is there (bucketed all-reduce, XLA's "
        "latency-hiding scheduler), reduce less often (gradient accumulation) or in a smaller "
        "type, or make the work of each device larger.",
        _by_step(facts, facts.part("communication_ps"), **_columns(facts, *parts)),
    )


def idle_between_steps(facts: StepFacts, gaps: _Array) -> Finding | None:
    """Nothing is done between the steps, for ``gaps`` before each row's, in ps.

    Waiting for input is told of as that.
    """
    gap = int(gaps.sum())
    share = gap / facts.period_ps if facts.period_ps else 0.0
    least, much = (BETWEEN, MUCH_BETWEEN) if facts.has_device else (HOST_BETWEEN, 1.0)
    if facts.count < 2 or share < least:
        return None
    usual, longest = int(np.median(gaps[facts.number > 0])), int(gaps.max())
    who = "the device is idle" if facts.has_device else "no op runs"
    stalls = _stalls(facts, gaps, usual)
    told = f"{time_text(usual)} each (median), {time_text(longest)} at most"
    if stalls.size:
        moments = [facts.part("start_ps")[row] - facts.part("gap_before_ps")[row] for row in stalls]
        some = ", ".join(
            f"{time_text(int(gaps[row]))} at {time_text(int(moment))}"
            for row, moment in zip(stalls[:_STALLS], moments, strict=False)
        )
        some += ", ..." if stalls.size > _STALLS else ""
        told = f"{stalls.size} long stalls ({some}), else {time_text(usual)} each (median)"
        told = told.replace("1 long stalls", "1 long stall") if stalls.size == 1 else told
    return Finding(
        "idle_between_steps",
        severity_of(share, much),
        f"{who} between the steps for {share:.0%} of the time: {told}",
        {
            "steps": facts.count,
            "devices": len(facts.devices),
            "gap_ps": gap // facts.lanes,
            "median_gap_ps": usual,
            "longest_gap_ps": longest,
            "stalls": int(stalls.size),
            "share": share,
            "gain_ps": gap // facts.lanes,
            "gain_share": share,
        },
        "Move what runs between the steps off the training loop: write checkpoints and logs on "
        "another thread, fetch the next batch while the device computes, and do not wait for a "
        "step's result before the next one is launched."
        if facts.has_device
        else "Look for what the program waits for between two steps, or mark it as part of them.",
        _by_step(
            facts,
            gaps,
            idle_from_ps=facts.part("start_ps") - facts.part("gap_before_ps"),
            idle_before_ps=gaps,
        ),
    )


def _stalls(facts: StepFacts, gaps: _Array, usual: int) -> _Array:
    """The rows before which a few long waits lie that make most of all, a wait of several devices
    once; the longest first. None where it is the usual wait that adds up.
    """
    rows = np.flatnonzero(gaps > max(LONG_STALL * usual, LEAST_STALL_PS))
    most = FEW_STALLS * facts.rows
    if rows.size > most or int(gaps[rows].sum()) < MOST_STALLED * int(gaps.sum()):
        return rows[:0]
    # Devices wait side by side: what overlaps is one stall, told by the longest.
    begin = (facts.part("start_ps") - facts.part("gap_before_ps"))[rows]
    order = np.argsort(begin, kind="stable")
    rows, begin = rows[order], begin[order]
    last = np.maximum.accumulate(begin + gaps[rows])
    stall = np.cumsum(np.concatenate([[0], begin[1:] >= last[:-1]])[: rows.size])
    order = np.lexsort((-gaps[rows], stall))
    first = np.unique(stall[order], return_index=True)[1]
    longest: _Array = rows[order[first]]
    return longest[np.argsort(-gaps[longest], kind="stable")]


def _evidence(facts: StepFacts, share: float, gain: int, *parts: str) -> dict[str, object]:
    told: dict[str, object] = {
        "steps": facts.count,
        "devices": len(facts.devices),
        "wall_ps": facts.wall_ps // facts.lanes,
    }
    told |= {name: facts.total(name) // facts.lanes for name in parts}
    return told | {"share": share, "gain_ps": gain // facts.lanes, "gain_share": share}


_ROWS = 20


def _by_step(facts: StepFacts, lost: _Array, **shown: _Array) -> tuple[dict[str, object], ...]:
    """The steps that lose most, per device, with the columns ``shown``."""
    order = np.argsort(-lost, kind="stable")[:_ROWS].tolist()
    return tuple(
        {
            "step": facts.label(row),
            **({"device": facts.devices[int(facts.device[row])]} if facts.devices else {}),
            "wall_ps": int(facts.part("wall_ps")[row]),
            **{name: int(values[row]) for name, values in shown.items()},
        }
        for row in order
        if int(lost[row])
    )


def _columns(facts: StepFacts, *parts: str) -> dict[str, _Array]:
    return {name: facts.part(name) for name in parts}


def _sum(facts: StepFacts, *parts: str) -> _Array:
    total: _Array = np.sum([facts.part(name) for name in parts], axis=0)
    return total


def _waiting(facts: StepFacts) -> _Array:
    """How long the device had nothing to do, and neither input nor compilation was why."""
    return _sum(facts, "launch_ps", "host_compute_ps", "idle_ps")


def _launching(facts: StepFacts, gaps: Gaps) -> _Array:
    """How much of that is spread over launches: a short wait before one piece of work each."""
    found: _Array = np.maximum(facts.part("launch_ps"), np.minimum(gaps.ps, _waiting(facts)))
    return found
