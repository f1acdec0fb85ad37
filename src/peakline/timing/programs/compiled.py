"""Which programs are compiled in some steps, whose functions they are, and what changed.

PyTorch calls a compiled part ``Torch-Compiled Region: 0/3``: the third time after the first that
frame 0 was compiled (``torch/_guards.py``: ``CompileId``). Within it ``CompiledFunction`` has the
shapes of its inputs, with ``record_shapes``, where gradients are computed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables import Profile
from peakline.text import ordinal
from peakline.timing.ops.eager import called, in_windows
from peakline.timing.steps.facts import StepFacts
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity, is_marker
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.frames import Frame, frame_of
from peakline.trace.op_inputs import all_dims_of

_NAMES = 3
_NAMED = 0.05
"""A program is named when it has this share of all compilation that a call stands around."""
_JITTED = "PjitFunction("
_TRACED = "tf_function_call"
_LARGEST = 64 << 20
"""Bytes of programs that are looked through for the shapes of their parameters."""
_SHAPES = 3


@dataclass(frozen=True)
class Compiled:
    """A call that had to compile: what a person calls it, the ``function`` that was compiled and
    ``caller``, the function of the program that called it, where frames say so. ``times`` is how
    many such calls there are.
    """

    name: str
    function: Frame | None = None
    caller: Frame | None = None
    times: int = field(default=1, compare=False)

    @property
    def title(self) -> str:
        """``<lambda> (train.py:56), called in step (train.py:54)``."""
        name = self.name if self.function is None else self.function.title
        same = self.caller is not None and self.caller.function == self.name
        return name if self.caller is None or same else f"{name}, called in {self.caller.title}"


def programs_compiled(profile: Profile, facts: StepFacts, rows: AnyArray) -> list[Compiled]:
    """What calls the compiler in these rows: the calls right around it, those with most first.

    Without steps in all of the profile. At most three. Raises InputError when the profile cannot
    be read.
    """
    trace = trace_of(profile)
    if not trace.size:
        return []
    does, nesting = activity_of(profile), nesting_of(profile)
    parent = nesting.parent
    begin, end = windows_of_rows(trace, facts, rows)
    names = trace.name.values
    is_frame = np.array([*(frame_of(name) is not None for name in names), False], np.bool_)
    is_call = ~is_frame[trace.name.codes] & (does != Activity.COMPILE)
    weights, times = np.zeros((2, len(names) + 1), np.int64)
    examples: dict[int, int] = {}
    for line in trace.lines_on(HOST):
        events = line.first + np.flatnonzero(does[line.events] == Activity.COMPILE)
        events = events[parent[events] >= 0]
        events = events[does[parent[events]] != Activity.COMPILE]
        events = events[in_windows(trace.start[events], begin, end)]
        if not events.size:
            continue
        around = nesting.around(events, is_call)
        # Within nothing but frames: the innermost that is the program's own.
        only_frames = around < 0
        around[only_frames] = parent[events[only_frames]]
        codes = trace.name.codes[around]
        np.add.at(weights, codes, trace.end[events] - trace.start[events])
        np.add.at(times, trace.name.codes[np.unique(around)], 1)
        for code, event in zip(codes.tolist(), events.tolist(), strict=True):
            examples.setdefault(code, event)
    total = int(weights.sum())
    result: dict[str, Compiled] = {}
    for code in np.argsort(-weights, kind="stable").tolist():
        if weights[code] < max(_NAMED * total, 1) or len(result) == _NAMES:
            break
        name = names[code] if code < len(names) else ""
        if name and not is_marker(name):
            one = _compiled(trace, parent, called(name), examples[code])
            one = replace(one, times=int(times[code]))
            result.setdefault(one.title, one)
    return list(result.values())


def windows_of_rows(trace: Trace, facts: StepFacts, rows: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Begins and ends (ps) of these rows of steps, in order of time; without steps those of all."""
    if not facts.rows:
        return trace.start.min(keepdims=True), trace.end.max(keepdims=True) + 1
    order = rows[np.argsort(facts.part("start_ps")[rows], kind="stable")]
    return facts.part("start_ps")[order], np.maximum.accumulate(facts.part("end_ps")[order])


def _compiled(trace: Trace, parent: AnyArray, name: str, event: int) -> Compiled:
    """What is compiled by the compilation ``event``, by the frames around and within it."""
    caller = None
    above = int(parent[event])
    while above >= 0:
        frame = frame_of(trace.name[above] or "")
        if frame is not None and frame.whose == "program":
            caller = frame
            break
        above = int(parent[above])
    own = frame_of(name)
    if own is not None:
        return Compiled(own.function, own if own.whose == "program" else None, caller)
    function = None
    inside, last = event + 1, trace.end[event]
    while function is None and inside < trace.size and trace.start[inside] < last:
        frame = frame_of(trace.name[inside] or "")
        if frame is not None and frame.whose == "program" and frame.function == name:
            function = frame
        inside += 1
    return Compiled(name, function, caller)


def first_calls_ps(profile: Profile, facts: StepFacts, rows: AnyArray) -> AnyArray:
    """Per one of ``rows`` how long functions of TensorFlow ran for the first time there, without
    the ops in it: the first call prepares the graph on the runtime's side.
    """
    trace = trace_of(profile)
    result = np.zeros(rows.size, np.int64)
    functions = profile.event_rules.function_calls
    if functions is None:
        return result
    names = trace.name.values
    wanted = [code for code, name in enumerate(names) if functions.call.match(name)]
    if not wanted:
        return result
    events = np.flatnonzero(np.isin(trace.name.codes, wanted))
    events = events[np.argsort(trace.start[events], kind="stable")]
    first = np.unique(trace.name.codes[events], return_index=True)[1]
    events = events[first]
    own = nesting_of(profile).own_ps[events]
    begin, end = facts.part("start_ps")[rows], facts.part("end_ps")[rows]
    for place in range(rows.size):
        here = (trace.start[events] >= begin[place]) & (trace.start[events] < end[place])
        result[place] = int(own[here].sum())
    return result


def what_changed(profile: Profile, names: list[str]) -> str:
    """What differs between the programs of one name, in a person's words; empty where nothing
    says it.
    """
    said = _parameters(profile, names)
    return said or _traces(profile, names)


def _parameters(profile: Profile, names: list[str]) -> str:
    """By the shapes of the parameters of programs that XLA compiled for one function."""
    programs = profile.programs()
    if programs is None or not len(programs):
        return ""
    wanted = {module_name(name) for name in names} | {module_name(f"jit_{n}") for n in names}
    texts = [programs.name(number).partition("(")[0] for number in range(len(programs))]
    numbers = [number for number, text in enumerate(texts) if module_name(text) in wanted]
    if len(numbers) < 2 or sum(len(programs.data(k)) for k in numbers) > _LARGEST:
        return ""
    columns = frozenset(("module_id", "computation_id", "opcode", "shape", "parameter_number"))
    table = profile.columns("hlo_instructions", columns)
    entry = profile.columns("hlo_computations", frozenset(("computation_id", "is_entry")))
    entries = entry.array("computation_id")[entry.array("is_entry")]
    module = table.array("module_id")
    use = np.isin(module, numbers) & np.isin(table.array("computation_id"), entries)
    use &= table.names("opcode").codes == table.names("opcode").code_of("parameter")
    rows = np.flatnonzero(use)
    shapes: dict[int, list[tuple[int, str]]] = {number: [] for number in numbers}
    shape, place = table.names("shape"), table.array("parameter_number")
    for row in rows.tolist():
        shapes[int(module[row])].append((int(place[row]), shape[row] or ""))
    forms = {tuple(sorted(own)) for own in shapes.values()}
    if len(forms) == 1:
        return (
            "the shapes and types of its arguments are the same each time: it is a new function "
            "object in each step (a lambda, partial or jit made in the loop), or a static argument "
            "changes"
        )
    arguments = sorted({place for own in forms for place, _ in own})
    for argument in arguments:
        values = sorted({text for own in forms for at, text in own if at == argument})
        if len(values) > 1:
            shown = ", ".join(values[:_SHAPES]) + (", ..." if len(values) > _SHAPES else "")
            return f"argument {argument} changes: {shown}"
    return "the number of its arguments changes"


def module_name(name: str) -> str:
    """What XLA calls the program of a function: its name in letters that it takes."""
    return re.sub(r"\W", "_", name).rstrip("_")


def _traces(profile: Profile, names: list[str]) -> str:
    """By the count that TensorFlow writes of how often a function was traced."""
    functions = profile.event_rules.function_calls
    if "event_stats" not in profile.tables or functions is None:
        return ""
    stats = profile.typed_stats(frozenset((functions.traced,)))
    if not stats.rows:
        return ""
    events = profile.columns("events", frozenset(("name",))).names("name")
    counts = [
        int(stats.array("integer")[row])
        for row, event in enumerate(stats.array("event_id").tolist())
        if events[event] in names
    ]
    if len(set(counts)) < 2:
        return ""
    return f"it is traced for the {ordinal(max(counts))} time" if max(counts) > 3 else ""


_REGION = re.compile(
    r"Torch-Compiled Region: (?:![0-9]+/)?(?P<frame>[0-9]{1,9})/(?P<time>[0-9]{1,9})"
)
_CALL = "CompiledFunction"
_REGIONS = 3


@dataclass(frozen=True)
class Region:
    """A part of the program that was compiled ``times``, with shapes of an input that ``changed``
    from time to time; both in a person's words.
    """

    frame: int
    times: int
    changed: str

    @property
    def name(self) -> str:
        """``region 0 of torch.compile``."""
        return f"region {self.frame} of torch.compile"

    @property
    def title(self) -> str:
        """``region 0 of torch.compile for the 9th time``."""
        return f"{self.name} for the {ordinal(self.times)} time"


def regions_compiled(profile: Profile, facts: StepFacts, rows: AnyArray) -> list[Region]:
    """The regions that run for the first time in these rows, after they were compiled before; at
    most three, those compiled most often first. Without steps in all of the profile.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    names = trace.name.values
    result = {code: match for code, name in enumerate(names) if (match := _REGION.match(name))}
    if not result:
        return []
    events = np.flatnonzero(np.isin(trace.name.codes, list(result)))
    events = events[np.argsort(trace.start[events], kind="stable")]
    first = np.unique(trace.name.codes[events], return_index=True)[1]
    events = events[np.sort(first)]
    is_new = in_windows(trace.start[events], *windows_of_rows(trace, facts, rows))
    times: dict[int, int] = {}
    for event, new in zip(events.tolist(), is_new.tolist(), strict=True):
        match = result[int(trace.name.codes[event])]
        if new and int(match["time"]):
            frame = int(match["frame"])
            times[frame] = max(times.get(frame, 0), int(match["time"]) + 1)
    inputs = _inputs(profile, result, events)
    return [
        Region(frame, times[frame], _changed(inputs.get(frame, [])))
        for frame in sorted(times, key=lambda frame: (-times[frame], frame))[:_REGIONS]
    ]


def _inputs(
    profile: Profile, result: dict[int, re.Match[str]], events: AnyArray
) -> dict[int, list[str]]:
    """Of each frame the shapes of the inputs, by time it was compiled, where they are recorded."""
    dims, texts = all_dims_of(profile)
    trace = trace_of(profile)
    code = trace.name.code_of(_CALL)
    if code < 0 or not texts:
        return {}
    calls = np.flatnonzero((trace.name.codes == code) & (dims >= 0))
    is_region = np.isin(trace.name.codes, list(result))
    around = nesting_of(profile).around(calls, is_region)
    by_region = dict(zip(around[::-1].tolist(), dims[calls[::-1]].tolist(), strict=True))
    shapes: dict[int, list[str]] = {}
    for event in events.tolist():
        if event in by_region:
            frame = int(result[int(trace.name.codes[event])]["frame"])
            shapes.setdefault(frame, []).append(texts[by_region[event]])
    return shapes


def _changed(texts: list[str]) -> str:
    """Which shapes an input has that is not the same each time."""
    try:
        forms = [json.loads(f"[{text}]") for text in texts]
    except (ValueError, RecursionError):  # not what PyTorch writes
        return ""
    if len(forms) < 2:
        return ""
    if len({len(form) for form in forms}) > 1:
        return "the number of its inputs changes"
    for values in zip(*forms, strict=True):
        distinct = list(dict.fromkeys(map(str, values)))
        if len(distinct) > 1:
            more = ", ..." if len(distinct) > _SHAPES else ""
            return f"the shape of an input changes: {', '.join(distinct[:_SHAPES])}{more}"
    return "the shapes of its inputs are the same each time"
