"""What the ``timeline`` tool takes."""

from __future__ import annotations

from typing import Literal

from peakline.toolbox.parameters import Parameters, parameter

_MOST_PS = 1 << 62


_MOST_WIDTH = 16384


_LONGEST_TEXT = 1000


class TimelineParameters(Parameters):
    """The parameters; text is accepted for every value."""

    view: Literal[
        "tile", "lanes", "search", "event", "counter", "find", "area", "arrows", "steps"
    ] = parameter(
        "tile",
        description="tile: what to draw; lanes: lines and names; search: events by name; "
        "event: all about one; counter: memory in use and other counters; find: the event "
        "of a name at a moment; area: what runs on lines in a stretch, by name and nested; "
        "arrows: what one event hands to another; steps: the steps of every device",
    )
    start_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="begin of the viewport. Default: the first"
    )
    end_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="its end, exclusive. Default: past the last"
    )
    width: int = parameter(1000, ge=1, le=_MOST_WIDTH, description="pixels of the viewport")
    lines: str | None = parameter(
        None,
        max_length=1 << 16,
        description="all views of events: only these lines of view lanes, as 0,3,8-12; "
        "counter: only these counters",
    )
    rows: int | None = parameter(
        None,
        ge=1,
        le=4096,
        description="tile: at most so many drawing rows of each line; "
        "steps: of at most so many devices",
    )
    search: str | None = parameter(
        None,
        max_length=_LONGEST_TEXT,
        description="search: text in the name, in any case; find: the whole name of an event or op",
    )
    pattern: bool = parameter(default=False, description="search: the text is an expression (RE2)")
    at_ps: int | None = parameter(
        None,
        ge=-_MOST_PS,
        le=_MOST_PS,
        description="search: next and previous from here. Default: the viewport's begin; "
        "find: the moment at which the event begins, or that it holds; "
        "steps: the step that ends after it is found",
    )
    until_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="find: where the event ends"
    )
    device: str | None = parameter(
        None,
        max_length=_LONGEST_TEXT,
        description="find: the plane it is on, if any such event is on that plane; "
        "steps: the device of the step to find",
    )
    step: str | None = parameter(
        None, max_length=_LONGEST_TEXT, description="steps: the id or name of a step to find"
    )
    event: int | None = parameter(
        None,
        description="event: its id, as in tiles; search: next and previous from there; "
        "arrows: only those of this event",
    )
    with_step: bool = parameter(
        default=True, description="event: its step too, which costs grouping all events once"
    )
    activities: bool = parameter(
        default=False, description="tile: also what goes on in each item (column activity)"
    )
    names_from: int = parameter(
        0, ge=0, description="lanes: names from this code on, where they come in several parts"
    )
