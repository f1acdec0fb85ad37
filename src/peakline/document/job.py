"""What is said of a job of many ranks: its headline, what it waits for, who differs, its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from peakline.document.job_members import (
    MOST_RANKS,
    Line,
    groups_line,
    job_part,
    member_lines,
    names_text,
    warnings_of,
)
from peakline.document.job_memory import memory_document, memory_line, memory_lines
from peakline.document.model import Column, Table, capital
from peakline.findings.finding import SEVERITIES
from peakline.jobs.answer import JobAnswer, Root
from peakline.jobs.causes import (
    COMPILE,
    COPIES,
    HOST,
    INPUT,
    MORE_WORK,
    SLOWER_DEVICE,
    Cause,
    Difference,
)
from peakline.jobs.excess import ALWAYS
from peakline.jobs.members import Job, Member
from peakline.jobs.missed import Missed
from peakline.jobs.wires import transfers_of
from peakline.safe_text import cut_middle
from peakline.text import counted, size_text, time_text
from peakline.timing.collectives import bus_bandwidth
from peakline.timing.steps.facts import PARTS

MOST_FINDINGS = 3
MARK_STEPS = "call prof.step() in the loop (PyTorch), or mark it with StepTraceAnnotation (JAX)"
MISSING_MAY_BE_LATE = "what looks like transfers may be waiting for a rank whose profile is missing"
_WORTH_SAYING = 0.10
"""Transfers that take so much of the steps are worth a word where nobody is late."""


@dataclass(frozen=True)
class SharedFinding:
    """A finding of one kind on several ranks: ``document`` is that of the rank where it gains
    most, ``members`` who has it, ``gains`` the least and the largest share that it promises.
    """

    document: Mapping[str, Any]
    members: tuple[Member, ...]
    gains: tuple[float, float]

    def as_json(self) -> dict[str, object]:
        """The finding's own, and who has it."""
        return {
            **self.document,
            "ranks": [one.title for one in self.members],
            "gain_share_range": list(self.gains),
        }


def shared_findings(answer: JobAnswer) -> list[SharedFinding]:
    """The findings of the ranks, those of one kind together, what gains most first; not whom the
    others wait for, which is said of the job, nor what advises to hide that.
    """
    job = answer.job
    left_out = {"straggler", *(("communication_not_overlapped",) if answer.roots else ())}
    by_kind: dict[tuple[str, str], list[tuple[Member, Mapping[str, Any]]]] = {}
    for member in job.firsts:
        seen = set()
        for one in member.profile.first:
            key = str(one["about"]), str(one["kind"])
            if key not in seen and key[1] not in left_out:
                by_kind.setdefault(key, []).append((member, one))
            seen.add(key)
    result = []
    for rows in by_kind.values():
        gains = [float(one["gain_share"]) for _, one in rows]
        most = max(rows, key=lambda row: (_severity(row[1]), float(row[1]["gain_share"])))[1]
        members = tuple(member for member, _ in rows)
        result.append(SharedFinding(most, members, (min(gains), max(gains))))
    result.sort(key=lambda one: (-_severity(one.document), -len(one.members), -one.gains[1]))
    return result


def _severity(document: Mapping[str, Any]) -> int:
    return -SEVERITIES.index(str(document["severity"]))


def headline(answer: JobAnswer) -> str:
    """The one sentence that matters most about the time of a job."""
    job = answer.job
    if answer.missed and not answer.missed[0].is_lost:
        return missed_text(answer, answer.missed[0])
    if answer.roots:
        root = answer.roots[0]
        return f"{_subject(answer, root)}{_gain(root)}"
    if not job.steps:
        return _without_steps(answer)
    step = f"step {time_text(round(answer.replay.recorded_ps))}"
    memory = answer.memory
    if memory.members and memory.apart:
        step += f"; {memory_lines(memory)[0].partition(':')[0]}"
    if not answer.paired.is_paired.any():
        if len(job.members) < 2:
            return step
        return f"{step}; {no_collectives(answer)}"
    if answer.pauses is not None:
        return f"{step}; no rank is always late: {pauses_text(answer)}"
    share = answer.transfer_share or 0.0
    if share >= _WORTH_SAYING:
        return f"{step}; no rank keeps the others waiting; {share:.0%} of it are transfers"
    return f"{step}; no rank keeps the others waiting"


def _without_steps(answer: JobAnswer) -> str:
    if answer.last is None:
        return _memory_headline(answer)
    member, often, of = answer.last
    who = answer.job.members[member].title
    said = f"{who} comes last to {often:,} of {counted(of, 'collective')}"
    return f"{said}; no steps are marked, so nobody can say why: {MARK_STEPS}"


def _memory_headline(answer: JobAnswer) -> str:
    if not answer.memory.members:
        return "neither memory nor time in these profiles"
    return memory_line(answer.memory)


def no_collectives(answer: JobAnswer) -> str:
    """That nobody knows who waits, and why."""
    many = answer.paired.rows.member.size
    if many:
        return "no collective is recorded on two ranks: who waits for whom is not known"
    return "no collectives are recorded: who waits for whom is not known"


def missed_text(answer: JobAnswer, one: Missed) -> str:
    """That a rank did not take part in a collective."""
    size = f" of {size_text(one.size_bytes)}" if one.size_bytes >= 0 else ""
    what = f"{one.own} of {one.usual} {one.kind}s{size} in {one.step}"
    who = answer.job.members[one.member].title
    if one.is_lost:
        return f"of {who} only {what} are recorded: the others end with its peers'"
    return f"{who} took part in {what} only: what its peers wait for from then on is its next one"


def pauses_text(answer: JobAnswer) -> str:
    """What single steps of ever other ranks lose."""
    pauses = answer.pauses
    if pauses is None:
        return ""
    without = answer.step_without_pauses_ps
    who = names_text([answer.job.members[n] for n in pauses.members])
    who = f"ever other ranks ({who})" if len(pauses.members) > 1 else who
    text = "" if without is None else f": a mean step takes {time_text(round(without))} without"
    return (
        f"{counted(pauses.steps, 'step')} {'is' if pauses.steps == 1 else 'are'} held up, by "
        f"{who}{text}"
    )


def _subject(answer: JobAnswer, root: Root) -> str:
    job = answer.job
    if root.wire is not None:
        where = f" with {', '.join(root.wire.machines)}" if root.wire.machines else ""
        of = "" if where else f" of {root.wire.title(job)}"
        return f"transfers of groups{where}{of} take {root.wire.ratio:.1f} times as long as others'"
    if root.fault is None:
        return ""
    members = [job.members[n] for n in root.members]
    who, many = root_title(job, root), len(members) > 1
    if root.fault.is_stage:
        who += f", which {'have' if many else 'has'} a place of {'their' if many else 'its'} own,"
    else:
        many = False
    others = len(job.members) - len(members)
    if root.step_without_ps is None:
        return f"{who} work{'' if many else 's'} longer than {'their' if many else 'its'} peers"
    return f"{who} keep{'' if many else 's'} {counted(others, 'other rank')} waiting"


def _gain(root: Root) -> str:
    if root.step_without_ps is None:
        excess = root.fault.excess_ps if root.fault is not None else 0.0
        return f", by {time_text(round(excess))} a step; nothing shows that the others wait for it"
    return (
        f": a step takes {time_text(round(root.step_ps))}, without it "
        f"{time_text(round(root.step_without_ps))} ({-root.share:+.0%})"
    )


def root_title(job: Job, root: Root) -> str:
    """Who it is: a rank, a host with all or some of its devices, or the ranks of a stage."""
    members = [job.members[n] for n in root.members]
    if len(members) < 2 or root.fault is None or root.fault.is_stage:
        return names_text(members)
    first = members[0]
    own = [one for one in job.members if one.profile is first.profile]
    title = f"rank {first.number}" if first.number is not None else first.host
    return (
        title if len(own) == len(members) else f"{title} ({len(members)} of its {len(own)} devices)"
    )


def root_lines(answer: JobAnswer, root: Root) -> list[str]:
    """What the job waits for, line by line: who, how often, why, and what to do."""
    if root.wire is not None:
        text = f"{_subject(answer, root)}{_gain(root)}"
        advice = (
            "Nobody is late to these collectives: look at the links, switches and counters of "
            "errors between their nodes, and at what else uses them."
        )
        return [text, advice]
    if root.fault is None or root.cause is None:
        return []
    text = f"{_subject(answer, root)}{_gain(root)}{_when(answer, root)}"
    return [text, cause_text(root.cause), _advice(answer, root)]


def root_finding(answer: JobAnswer, root: Root) -> dict[str, Any]:
    """What the job waits for, in the form of a finding."""
    title, *more = [line for line in root_lines(answer, root) if line]
    document = _root_document(answer, root)
    return {
        "about": "time",
        "gain_share": root.share,
        "kind": "straggler" if root.wire is None else "slow_network",
        "severity": "warning" if root.share >= _GRAVE or root.step_without_ps is None else "info",
        "title": title,
        "evidence": document | {"differences": []},
        "rows": document["differences"],
        "suggestion": " ".join(f"{capital(line).rstrip('.')}." for line in more),
    }


MISSED = "missed_collective"
MISSED_ADVICE = (
    "Look for a branch that only this rank takes in that step: every rank of a group must call the "
    "same collectives in the same order."
)
_GRAVE = 0.05
_NAME = 60


def _when(answer: JobAnswer, root: Root) -> str:
    if root.fault is None:
        return ""
    known = np.isfinite(answer.work.excess_ps[root.fault.member])
    steps, of = int(root.fault.steps.sum()), int(known.sum())
    if root.fault.when == ALWAYS:
        return f"; in all {of} steps" if of > 1 else ""
    labels = [label for label, place in answer.job.steps.items() if root.fault.steps[place]]
    named = f" ({labels[0]} to {labels[-1]})" if len(labels) > 1 else f" ({labels[0]})"
    return f"; in {steps} of {of} steps{named}, {time_text(round(root.fault.excess_ps))} in each"


def cause_text(cause: Cause) -> str:
    """Why a rank works longer, with the numbers that say so."""
    beyond, name = time_text(round(cause.part_ps)), cut_middle(cause.name, _NAME)
    first = cause.rows[0] if cause.rows else None
    if cause.kind == SLOWER_DEVICE and first is not None:
        what = "kernels" if cause.part == "compute" else "ops"
        return (
            f"the same {what} as often as on its peers take {cause.ratio:.2f} times as long, "
            f"{beyond} more a step (most: {name}, {_times(first)})"
        )
    if cause.kind == MORE_WORK and first is not None:
        return f"it has more to do, {beyond} more a step: {name} {_more_text(first, cause.ratio)}"
    if cause.kind == INPUT:
        within = f", in {name}" if name else ""
        return f"it waits {beyond} longer a step for its input{within}"
    if cause.kind == COMPILE:
        return f"it compiles, {beyond} more a step{f' ({name})' if name else ''}"
    if cause.kind == COPIES:
        return f"it copies for {beyond} more a step{f' ({name})' if name else ''}"
    if cause.kind == HOST and first is not None:
        return f"its host is in {name} for {_times(first)}, {beyond} more of the step is host time"
    return (
        f"{PARTS[f'{cause.part}_ps']} is {beyond} longer a step, and no event says what it did: "
        "record with with_stack=True (PyTorch) or mark what the program does"
    )


def _times(one: Difference) -> str:
    return f"{time_text(round(one.own_ps))} a step where its peers take " + time_text(
        round(one.peer_ps)
    )


def _more_text(one: Difference, ratio: float) -> str:
    if one.own_shape and one.own_shape != one.peer_shape and one.peer_shape:
        return (
            f"on {one.own_shape} where its peers have {one.peer_shape}, {ratio:.2f} times as much"
        )
    if one.own_count > one.peer_count and one.peer_count:
        return f"{one.own_count:.3g} times a step, {one.peer_count:.3g} on its peers"
    if one.peer_count:
        return f"{ratio:.2f} times as much as on its peers"
    return f"{one.own_count:.3g} times a step, not at all on its peers"


def _advice(answer: JobAnswer, root: Root) -> str:
    if root.cause is None or root.fault is None:
        return ""
    member = answer.job.members[root.fault.member]
    if root.cause.kind == SLOWER_DEVICE:
        where = f" on {member.machine}" if member.machine else ""
        if root.cause.part != "compute":
            return f"Look what else runs{where}, and whether its processor is throttled or shared."
        return (
            f"Look at the clock, the temperature and the other processes of its device{where} "
            "(NVIDIA: nvidia-smi -q -d PERFORMANCE,CLOCK), and leave it out if it stays slow."
        )
    if root.cause.kind == MORE_WORK:
        return "Give each rank the same amount: batches by tokens, not by samples; even shards."
    if root.cause.kind == INPUT:
        return "Look at its share of the data and its loader: more workers, prefetch, local files."
    if root.cause.kind in (HOST, COMPILE):
        return "Do on every rank the same, or off the step: only one of them does this."
    if root.cause.kind == COPIES:
        return "Copy from pinned memory, beside the computation, or not at all."
    return ""


def job_lines(answer: JobAnswer) -> list[Line]:
    """The labelled lines under the headline."""
    job, memory = answer.job, answer.memory
    result = member_lines(job) + groups_line(answer.groups)
    if memory.members:
        result.append(("memory", "", memory_line(memory)))
        result += [("", "differs", text) for text in memory_lines(memory)]
    result += _time_lines(answer)
    result += [("", "missed", missed_text(answer, one)) for one in answer.missed[:2]]
    if job.missing and (answer.transfer_share or 0.0) >= _WORTH_SAYING and not answer.roots:
        result.append(("", "note", MISSING_MAY_BE_LATE))
    return result


def _time_lines(answer: JobAnswer) -> list[Line]:
    times = answer.times
    steps = times.step[np.isfinite(times.step)]
    if not steps.size:
        return []
    low, high = time_text(round(float(steps.min()))), time_text(round(float(steps.max())))
    middle = time_text(round(answer.replay.recorded_ps))
    result: list[Line] = [("time", "step", f"{middle} (mean), {low} to {high} by rank")]
    if answer.waiting_share is not None and answer.transfer_share is not None:
        compute = float(np.nansum(times.compute) / np.nansum(times.step))
        text = (
            f"{compute:.0%} compute, {answer.waiting_share:.0%} waiting for the last rank, "
            f"{answer.transfer_share:.0%} transfers"
        )
        result.append(("", "where it goes", text))
        result.append(("", "collectives", _collectives_text(answer)))
    else:
        result.append(("", "collectives", no_collectives(answer)))
    clocks = answer.paired.clocks
    if clocks.aligned_by == "collectives":
        off = round(max(abs(one.ahead_ps) for one in clocks.machines))
        text = (
            f"{counted(len(clocks.machines), 'clock')} put on one axis by what ends together (off "
            f"by up to {time_text(off)}, sure to {time_text(clocks.uncertainty_ps)})"
        )
        result.append(("", "clocks", text))
    return result


def _collectives_text(answer: JobAnswer) -> str:
    rows = collective_classes(answer)
    if not rows:
        return "none on two ranks"
    most = max(rows, key=lambda row: row["transfer_ps"] * row["count"])
    rate = most["bus_bytes_per_second"]
    speed = f" at {rate / 1e9:.3g} GB/s of bus bandwidth" if rate else ""
    size = size_text(most["size_bytes"]) if most["size_bytes"] >= 0 else "sizes not recorded"
    total = int((answer.paired.members > 1).sum())
    return f"{counted(total, 'collective')} paired; most time: {most['kind']} {size}{speed}"


def collective_classes(answer: JobAnswer) -> list[dict[str, Any]]:
    """The collectives by kind, size and number of members: how many, the median wait and transfer,
    and the bus bandwidth that makes; those that take most first.
    """
    paired, rows = answer.paired, answer.paired.rows
    if not paired.count:
        return []
    transfer = transfers_of(paired)
    first = paired.order[paired.bounds[:-1]]
    wait = np.zeros(paired.count)
    np.maximum.at(wait, paired.collective, paired.wait)
    known = np.isfinite(transfer)
    keys = np.stack([rows.kind[first], rows.size_bytes[first], paired.members])
    result = []
    for key in np.unique(keys[:, known], axis=1).T.tolist():
        mine = known & (keys == np.array(key)[:, None]).all(axis=0)
        kind, times = rows.texts[key[0]], transfer[mine]
        # The median of what each ran at: with an even number not what the median time makes.
        rates = bus_bandwidth(kind, np.array(key[1]), np.array(key[2]), times)
        rate = float(np.median(rates))
        result.append(
            {
                "kind": kind, "size_bytes": key[1], "members": key[2], "count": int(mine.sum()),
                "wait_ps": round(float(np.median(wait[mine]))),
                "transfer_ps": round(float(np.median(times))),
                "bus_bytes_per_second": rate if np.isfinite(rate) else None,
            }
        )  # fmt: skip
    return sorted(result, key=lambda row: -row["transfer_ps"] * row["count"])


_COLUMNS = (
    Column("rank"), Column("step", "ps"), Column("compute", "ps"), Column("waiting", "ps"),
    Column("transfers", "ps"), Column("late", "ps"), Column("peak", "bytes"),
)  # fmt: skip


def ranks_table(answer: JobAnswer, most: int = MOST_RANKS) -> Table | None:
    """The ranks as rows: all where there are at most ``most``, else those that differ; None where
    there is one.
    """
    members = answer.job.members
    if len(members) < 2:
        return None
    shown = list(range(len(members)))
    if len(members) > most:
        shown = _differing(answer)
    rows = [_row(answer, number) for number in shown]
    more = len(members) - len(shown)
    rest = (f"{more:,} more alike",) if more else ()
    return Table("ranks" if not more else "ranks that differ", _COLUMNS, rows, rest)


def _differing(answer: JobAnswer) -> list[int]:
    """The places of the members that something was said of."""
    numbers = {id(member): number for number, member in enumerate(answer.job.members)}
    result = [root.fault.member for root in answer.roots if root.fault is not None]
    memory = answer.memory
    result += [numbers[id(memory.members[place])] for place in memory.apart]
    waiting = answer.times.waiting
    if np.isfinite(waiting).any() and answer.roots:
        result += [int(np.nanargmax(waiting))]
    return list(dict.fromkeys(result))[:MOST_RANKS]


def _row(answer: JobAnswer, number: int) -> tuple[Any, ...]:
    member, times = answer.job.members[number], answer.times
    peak = max((one.peak_bytes for one in member.profile.memory), default=None)
    figures = (times.step, times.compute, times.waiting, times.transfer, times.late)
    return (
        member.title,
        *("" if not np.isfinite(one[number]) else round(float(one[number])) for one in figures),
        "" if peak is None else peak,
    )


def job_document(answer: JobAnswer) -> dict[str, Any]:
    """What ``--json`` prints of a job, and the tool ``job`` answers."""
    job, paired, firsts = answer.job, answer.paired, set(answer.job.firsts)
    first = [_missed_finding(answer, one) for one in answer.missed if not one.is_lost]
    first += [root_finding(answer, root) for root in answer.roots]
    first += [one.as_json() for one in shared_findings(answer)]
    return {
        "job": job_part(job, answer.groups)
        | {
            "clocks": {
                "aligned_by": paired.clocks.aligned_by,
                "uncertainty_ps": paired.clocks.uncertainty_ps,
                "machines": [asdict(one) for one in paired.clocks.machines],
                "ranks": [
                    {"rank": one.number, "host": one.host} | asdict(answer.clock(number))
                    for number, one in enumerate(job.members)
                    if one in firsts
                ],
            }
        },
        "headline": headline(answer),
        "memory": memory_document(answer.memory),
        "time": _time_document(answer),
        "ranks": [_rank_document(answer, number) for number in range(len(job.members))],
        "first": first[:MOST_FINDINGS],
        "further_findings": max(len(first) - MOST_FINDINGS, 0),
        "findings": first,
        "warnings": warnings_of(job),
    }


def _time_document(answer: JobAnswer) -> dict[str, Any] | None:
    times = answer.times
    steps = times.step[np.isfinite(times.step)]
    if not steps.size:
        return None
    roots = roots_of(answer)
    return {
        "steps": len(answer.job.steps),
        "step_ps": {
            "mean": round(answer.replay.recorded_ps),
            "min": round(float(steps.min())),
            "median": round(float(np.median(steps))),
            "max": round(float(steps.max())),
        },
        "waiting_share": answer.waiting_share,
        "transfer_share": answer.transfer_share,
        "replay_error": answer.replay.error if answer.paired.is_paired.any() else None,
        "root": roots[0] if roots else None,
        "roots": roots,
        "step_without_ps": _whole(answer.step_without_ps),
        "missed": [
            asdict(one) | {"member": answer.job.members[one.member].title} for one in answer.missed
        ],
        "pauses": _pauses(answer),
        "collectives": collective_classes(answer),
    }


def roots_of(answer: JobAnswer) -> list[dict[str, Any]]:
    """``roots`` in the JSON of a job: whom or what it waits for, what costs most first."""
    missed = [_missed_root(answer, one) for one in answer.missed if not one.is_lost]
    return missed + [_root_document(answer, root) for root in answer.roots]


def waited_for(answer: JobAnswer) -> dict[str, Any]:
    """What answers about single hosts say of all of them: ``straggler``, the first root or None,
    and ``straggler_text``, the job's headline: of its time, where contributions are of that alone.
    """
    first = next(iter(roots_of(answer)), None)
    return {"straggler": first, "straggler_text": headline(answer)}


def _missed_root(answer: JobAnswer, one: Missed) -> dict[str, Any]:
    """A rank that did not take part, in the form of a root: what it costs is not known."""
    member, text = answer.job.members[one.member], missed_text(answer, one)
    return _root_document(answer, Root(answer.replay.recorded_ps, None)) | {
        "rank": member.number,
        "ranks": [member.number],
        "title": member.title,
        "host": member.host,
        "cause": MISSED,
        "evidence": [text],
        "share": None,
        "lost_ps": None,
        "steps": [one.step],
    }


def _missed_finding(answer: JobAnswer, one: Missed) -> dict[str, Any]:
    return {
        "about": "time",
        "gain_share": 0.0,
        "kind": MISSED,
        "severity": "error",
        "title": missed_text(answer, one),
        "evidence": _missed_root(answer, one),
        "suggestion": MISSED_ADVICE,
    }


def _pauses(answer: JobAnswer) -> dict[str, Any] | None:
    if answer.pauses is None:
        return None
    return {
        "steps": answer.pauses.steps,
        "ranks": [answer.job.members[n].title for n in answer.pauses.members],
        "excess_ps": round(answer.pauses.excess_ps),
        "step_without_ps": _whole(answer.step_without_pauses_ps),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None or not np.isfinite(value) else round(value)


def _root_document(answer: JobAnswer, root: Root) -> dict[str, Any]:
    result: dict[str, Any] = {
        "rank": None, "title": None, "host": None, "cause": "network",
        "evidence": root_lines(answer, root), "lost_ps": _whole(root.gain_ps),
        "share": root.share, "step_ps": _whole(root.step_ps),
        "step_without_ps": _whole(root.step_without_ps), "when": None, "steps": None,
        "machines": [], "groups": [], "differences": [],
    }  # fmt: skip
    if root.wire is not None:
        members = answer.job.members
        result["machines"] = list(root.wire.machines)
        result["groups"] = [[members[n].title for n in group] for group in root.wire.groups]
        return result
    if root.fault is not None and root.cause is not None:
        member = answer.job.members[root.fault.member]
        result |= {
            "rank": member.number,
            "ranks": list(dict.fromkeys(answer.job.members[n].number for n in root.members)),
            "title": root_title(answer.job, root),
            "host": member.host,
            "cause": root.cause.kind,
            "part": root.cause.part,
            "excess_ps": _whole(root.fault.excess_ps),
            "when": root.fault.when,
            "steps": [
                label for label, place in answer.job.steps.items() if root.fault.steps[place]
            ],
            "differences": [one.as_json() for one in root.cause.rows],
        }
    return result


def _rank_document(answer: JobAnswer, number: int) -> dict[str, Any]:
    member = answer.job.members[number]
    _, step, compute, waiting, transfer, late, peak = _row(answer, number)
    return {
        "rank": member.number,
        "title": member.title,
        "host": member.host,
        "machine": member.machine,
        "path": member.profile.path,
        "steps": len(member.labels),
        "peak_bytes": None if peak == "" else peak,
        **{
            f"{name}_ps": None if value == "" else value
            for name, value in (
                ("step", step), ("compute", compute), ("waiting", waiting),
                ("transfer", transfer), ("late", late),
            )
        },
    }  # fmt: skip
