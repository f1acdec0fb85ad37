"""What is said first of time, or of a file that holds graphs and nothing that ran.

Of time it is how long a step takes, which is slow, and for what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.headline.sentence import Phrase, Sentence
from peakline.findings.steps import beyond_median
from peakline.findings.time_answer import top_ops
from peakline.safe_text import cut_middle
from peakline.text import counted, time_text
from peakline.timing.ops.printed import printed_times
from peakline.timing.programs.utilisation import utilisation_of
from peakline.timing.steps.facts import PARTS, step_facts_of

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.steps.facts import StepFacts


_GRAPH_NAME = 60
_KINDS = {"graph_def": "GraphDef", "meta_graph": "MetaGraph", "hlo": "compiled program"}
_RAN = ("events", "op_runs")


def graph_headline(profile: Profile) -> tuple[Sentence, ...]:
    """How large its largest graph is. Empty where events or executions are recorded, or no graph.

    Raises InputError when the profile cannot be read.
    """
    if "graphs" not in profile.tables or any(profile.has_rows(name) for name in _RAN):
        return ()
    graphs = profile.columns("graphs")
    if not graphs.rows:
        return ()
    every = list(graphs.each("graph", "kind", "nodes", "functions"))
    name, kind, nodes, functions = max(every, key=lambda one: int(one[2]))
    params: dict[str, str | int] = {"graph": name} if name and len(every) > 1 else {}
    title = " ".join(
        part for part in (_KINDS.get(kind, kind), cut_middle(name, _GRAPH_NAME)) if part
    )
    inside = "computation" if kind == "hlo" else "function"
    size = counted(nodes, "instruction" if kind == "hlo" else "node")
    more = f" and {counted(functions, inside)}" if functions else ""
    phrases = [Phrase(f"{title} of "), Phrase(f"{size}{more}", "graph", params)]
    if len(every) > 1:
        phrases.append(Phrase(f", the largest of {counted(len(every), 'graph')}"))
    return (Sentence("graph", tuple(phrases)),)


_NAME = 40
_OP_NAME = 60
_LEAST = 0.005


def time_headline(profile: Profile) -> tuple[Sentence, ...]:
    """The median step, the slow step with what made it slow, the first step where it is one, and
    how busy devices are; the op with most self time where no steps are marked. None of it takes
    the findings.

    Raises InputError when the profile cannot be read.
    """
    facts = step_facts_of(profile)
    if facts.rows:
        return (_steps(facts), *_slow(facts), *_busy(profile, facts))
    return (*_busy(profile, facts), *_most(profile))


def notable_time(facts: StepFacts) -> tuple[Sentence, ...]:
    """The slow step that is none of the first, where there is one."""
    return tuple(one for one in _slow(facts) if one.is_notable) if facts.rows else ()


def _steps(facts: StepFacts) -> Sentence:
    main = facts.main
    wall = main.part("wall_ps")
    median = round(float(np.median(wall)))
    parts = sorted(PARTS, key=lambda name: -main.total(name))[:2]
    goes = [(PARTS[name], main.share(name)) for name in parts if main.share(name) >= _LEAST]
    several = f" of {facts.populations[0]}" if len(facts.populations) > 1 else ""
    steps = counted(facts.number_of_steps, "step")
    inferred = ", inferred" if facts.is_inferred else ""
    where = ", ".join(f"{share:.0%} {text}" for text, share in goes)
    length = Phrase(time_text(median), "steps", {})
    if wall.size == 1:
        phrases = [Phrase("one step of "), length]
    else:
        phrases = [Phrase(f"median step{several} "), length, Phrase(f" ({steps}{inferred})")]
    return Sentence("steps", (*phrases, Phrase(f": {where}" if where else "")))


def _slow(facts: StepFacts) -> list[Sentence]:
    """The slowest step that is none of the first of its name; then the slowest of those."""
    rows = facts.slow_rows()
    if not rows.size:
        return []
    is_first = facts.is_first[rows]
    result = []
    for chosen, kind in ((rows[~is_first], "slow_step"), (rows[is_first], "first_step")):
        if chosen.size:
            usual = facts.usual_ps(chosen)
            extra = facts.part("wall_ps")[chosen] - usual
            most = int(np.argmax(extra))
            result.append(
                _sentence(facts, int(chosen[most]), float(usual[most]), chosen.size, kind)
            )
    return result


def _sentence(facts: StepFacts, row: int, usual: float, count: int, kind: str) -> Sentence:
    wall = int(facts.part("wall_ps")[row])
    name = facts.label(row)
    params: dict[str, str | int] = {"name": name}
    if facts.devices:
        params["device"] = facts.devices[int(facts.device[row])]
    step = Phrase(cut_middle(name, _NAME), "steps", params)
    length = Phrase(time_text(wall), "timeline", {"step": name})
    others = f"; {counted(count - 1, 'more slow step')}" if count > 1 else ""
    is_first = kind == "first_step"
    rest = f", {beyond_median(facts, row, usual)}" + ("" if is_first else others)
    phrases = (
        Phrase("first step " if is_first else "slow step "),
        step,
        Phrase(" took "),
        length,
        Phrase(rest),
    )
    return Sentence(kind, phrases, is_notable=not is_first)


def _most(profile: Profile) -> list[Sentence]:
    """The op with most self time."""
    ops = top_ops(profile)
    if not ops:
        return _printed(profile)
    if ops[0].share < _LEAST:
        return []
    most = ops[0]
    whose = "the devices' ops" if most.side == "device" else "the host's ops"
    params: dict[str, str | int] = {"part": "ops", "op": most.op, "side": most.side}
    phrases = (
        Phrase(f"{most.share:.0%} of the self time of {whose} is "),
        Phrase(cut_middle(most.op, _OP_NAME), "steps", params),
    )
    return [Sentence("op", phrases)]


def _printed(profile: Profile) -> list[Sentence]:
    """The line with most time of the first table that a profiler printed."""
    tables = printed_times(profile)
    if not tables or not tables[0].rows:
        return []
    one, most = tables[0], tables[0].rows[0]
    what = "self time" if one.has_self else "time"
    text = f"{one.share(most):.0%} of the {one.side} {what} that {one.source} printed is "
    return [Sentence("printed", (Phrase(text), Phrase(cut_middle(most["op"], _OP_NAME))))]


def _busy(profile: Profile, facts: StepFacts) -> list[Sentence]:
    """What the steps use of the devices, else how long these were busy."""
    if facts.rows and profile.programs():
        use = utilisation_of(profile, facts.main)
        if use is not None and use.flops_share is not None and use.flops_share <= 1:
            text = f"MFU {use.flops_share:.1%} of {use.chips} x {use.chip}"
            return [Sentence("busy", (Phrase(text, "steps", {"part": "ops"}),))]
    devices = profile.columns_or_empty("device_time")
    if not devices.rows:
        return []
    whole = devices.array("end_ps") - devices.array("start_ps")
    shares = devices.array("busy_ps") / np.maximum(whole, 1)
    least, most = f"{shares.min():.0%}", f"{shares.max():.0%}"
    span = least if least == most else f"{least} to {most}"
    names = "device" if devices.rows == 1 else "devices"
    return [Sentence("busy", (Phrase(f"{names} busy "), Phrase(span, "timeline", {})))]
