"""Whose time it is on the threads of steps, event by event with a stack.

A slow second reader: it takes lists of events in order of time, and nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass
class Read:
    """An event of a step: its self time, and the places of what is around it (-1 for none).

    ``frame`` is the innermost frame of the program around it, itself for one; ``call`` the
    outermost event below that frame; ``parent`` what holds it, where that is in a step too.
    """

    place: int
    own_ps: int
    step: int
    frame: int
    call: int
    parent: int


def read_thread(
    events: Sequence[tuple[str, int, int]],
    steps: Sequence[tuple[int, int]],
    is_program: Callable[[str], bool],
) -> list[Read]:
    """``events`` (name, begin, end) of one thread, nested, by begin, then longest first."""
    result: dict[int, Read] = {}
    stack: list[int] = []
    for place, (name, begin, end) in enumerate(events):
        while stack and events[stack[-1]][2] <= begin:
            stack.pop()
        if stack and stack[-1] in result:
            result[stack[-1]].own_ps -= end - begin
        step = next((n for n, (a, b) in enumerate(steps) if a <= begin < b), -1)
        if step >= 0:
            inside = [one for one in stack if one in result]
            # What holds it counts only while nothing between them is outside of the steps.
            above = inside[-1] if inside and inside[-1] == stack[-1] else -1
            frame, call = -1, place
            if is_program(name):
                frame, call = place, -1
            elif above >= 0:
                frame = result[above].frame
                call = place if above == frame else result[above].call
            result[place] = Read(place, end - begin, step, frame, call, above)
        stack.append(place)
    return list(result.values())
