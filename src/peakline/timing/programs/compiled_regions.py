"""What ``torch.compile`` compiled in some steps: which part of the program, and what changed.

PyTorch calls a compiled part ``Torch-Compiled Region: 0/3``: the third time after the first that
frame 0 was compiled (``torch/_guards.py``: ``CompileId``). Within it ``CompiledFunction`` has the
shapes of its inputs, with ``record_shapes``, where gradients are computed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables import Profile
from peakline.text import ordinal
from peakline.timing.ops.eager import in_windows
from peakline.timing.programs.compiled import windows_of_rows
from peakline.timing.steps.facts import StepFacts
from peakline.trace.events import nesting_of, trace_of
from peakline.trace.op_inputs import all_dims_of

_REGION = re.compile(
    r"Torch-Compiled Region: (?:![0-9]+/)?(?P<frame>[0-9]{1,9})/(?P<time>[0-9]{1,9})"
)
_CALL = "CompiledFunction"
_REGIONS, _SHAPES = 3, 3


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
    found = {code: match for code, name in enumerate(names) if (match := _REGION.match(name))}
    if not found:
        return []
    events = np.flatnonzero(np.isin(trace.name.codes, list(found)))
    events = events[np.argsort(trace.start[events], kind="stable")]
    first = np.unique(trace.name.codes[events], return_index=True)[1]
    events = events[np.sort(first)]
    is_new = in_windows(trace.start[events], *windows_of_rows(trace, facts, rows))
    times: dict[int, int] = {}
    for event, new in zip(events.tolist(), is_new.tolist(), strict=True):
        match = found[int(trace.name.codes[event])]
        if new and int(match["time"]):
            frame = int(match["frame"])
            times[frame] = max(times.get(frame, 0), int(match["time"]) + 1)
    inputs = _inputs(profile, found, events)
    return [
        Region(frame, times[frame], _changed(inputs.get(frame, [])))
        for frame in sorted(times, key=lambda frame: (-times[frame], frame))[:_REGIONS]
    ]


def _inputs(
    profile: Profile, found: dict[int, re.Match[str]], events: AnyArray
) -> dict[int, list[str]]:
    """Of each frame the shapes of the inputs, by time it was compiled, where they are recorded."""
    dims, texts = all_dims_of(profile)
    trace = trace_of(profile)
    code = trace.name.code_of(_CALL)
    if code < 0 or not texts:
        return {}
    calls = np.flatnonzero((trace.name.codes == code) & (dims >= 0))
    is_region = np.isin(trace.name.codes, list(found))
    around = nesting_of(profile).around(calls, is_region)
    by_region = dict(zip(around[::-1].tolist(), dims[calls[::-1]].tolist(), strict=True))
    shapes: dict[int, list[str]] = {}
    for event in events.tolist():
        if event in by_region:
            frame = int(found[int(trace.name.codes[event])]["frame"])
            shapes.setdefault(frame, []).append(texts[by_region[event]])
    return shapes


def _changed(texts: list[str]) -> str:
    """Which shapes an input has that is not the same each time."""
    forms = [json.loads(f"[{text}]") for text in texts]
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
