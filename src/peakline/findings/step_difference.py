"""Why a step takes longer than another, in sentences: the parts, and what ran in them."""

from __future__ import annotations

from peakline.safe_text import cut_middle
from peakline.text import counted, short_time_text
from peakline.timing.step_breakdown import StepTimes
from peakline.timing.steps.difference import PartDifference, StepDifference, Work
from peakline.timing.steps.facts import PARTS, SLOW
from peakline.trace.frames import frame_of

_SAME = 0.05
"""Steps whose times differ by less are called equally long."""
_MUCH, _SOME = 0.2, 0.25
"""A part is named that makes so much of the difference, an op that makes so much of the part's."""
_PARTS, _OPS = 2, 2
_LONGEST = 100


def title_of(name: str | None) -> str:
    """What a person calls an event: the title of a frame, the name of anything else."""
    if name is None:
        return "no recorded function"
    frame = frame_of(name)
    return cut_middle(name if frame is None else frame.title, _LONGEST)


def is_slow(difference: StepDifference) -> bool:
    """Whether the steps take twice what they are compared with, or more, and are not the first."""
    return not difference.steps.is_first and _ratio(difference) >= SLOW


def _ratio(difference: StepDifference) -> float:
    """How many times the median the steps take, or the others that they are compared with."""
    usual = difference.usual.median_ps or difference.wall.usual
    return difference.wall.value / max(usual, 1)


def sentences_of(difference: StepDifference, times: StepTimes) -> list[str]:
    """Why the steps take longer or shorter, the most important first; ``times`` are those that the
    difference is about.
    """
    wall = difference.wall
    result = [_headline(difference, times)]
    if difference.steps.rows.tolist() == difference.usual.rows.tolist():
        return result
    changed = sorted(
        (p for p in difference.parts if p.ps.difference * wall.difference > 0),
        key=lambda part: -abs(part.ps.difference),
    )
    large = [p for p in changed if abs(p.ps.difference) >= _MUCH * abs(wall.difference)]
    for part in large[:_PARTS]:
        result += _of_part(part, difference)
    return result


def _headline(difference: StepDifference, times: StepTimes) -> str:
    wall, steps = difference.wall, difference.steps
    name = _label(times, int(steps.rows[0]))
    subject = f"{name} took"
    if steps.rows.size > 1:
        until = _label(times, int(steps.rows[-1]))
        subject = f"{steps.rows.size:,} steps, {name} to {until}, took a mean of"
    elif steps.is_first:
        subject = f"{name}, one of the first steps of its name, which warm up, took"
    if difference.steps.rows.tolist() == difference.usual.rows.tolist():
        many = difference.usual.of_steps
        is_only = f"the only whole step of its name: {short_time_text(wall.value)}"
        is_median = f"the median step of {many:,}: {short_time_text(wall.value)}"
        return f"{name} is {is_median if many > 1 else is_only}."
    other = _label(times, int(difference.usual.rows[0]))
    median = difference.usual.median_ps
    usual = f"the median step ({other}, {short_time_text(wall.usual)})"
    if not difference.usual.is_median:
        usual = f"{other} ({short_time_text(wall.usual)})"
    elif median != wall.usual:
        usual = (
            f"the median ({short_time_text(median)}); against {other}, the step next to it "
            f"({short_time_text(wall.usual)})"
        )
    ratio = _ratio(difference)
    if abs(ratio - 1) < _SAME:
        text = f"{subject} {short_time_text(wall.value)}, about as long as {usual}"
    else:
        text = f"{subject} {short_time_text(wall.value)}, {_times(ratio)} {usual}"
    return f"{text}: {_list(difference)}."


def _times(ratio: float) -> str:
    return f"{ratio:,.1f} times" if ratio < 100 else f"{ratio:,.0f} times"


def _label(times: StepTimes, row: int) -> str:
    name = times.name[row]
    return cut_middle(name, _LONGEST) if name else f"step {int(times.step_id[row])}"


def _list(difference: StepDifference) -> str:
    """The largest differences, of either sign."""
    whole = max(abs(difference.wall.difference), 1)
    parts = sorted(difference.parts, key=lambda part: -abs(part.ps.difference))
    named = [p for p in parts if abs(p.ps.difference) >= _MUCH * whole][: _PARTS + 1]
    if not difference.wall.difference and not named:
        return "no part differs"
    return ", ".join(f"{_signed(p.ps.difference)} {_where(p.part)}" for p in named)


def _where(part: str) -> str:
    texts = {
        "unknown": "in time that no event explains",
        "idle": "in which the device is idle and nothing recorded says why",
    }
    return texts.get(part) or f"in {PARTS[f'{part}_ps']}"


def _signed(ps: int) -> str:
    return f"{'+' if ps > 0 else '-' if ps < 0 else ''}{short_time_text(abs(ps))}"


def _of_part(part: PartDifference, difference: StepDifference) -> list[str]:
    """What the difference of one part is made of."""
    whole = part.ps.difference
    result = []
    ops = _most(difference.ops, part)
    frames = [one for one in _most(difference.frames, part) if one.name is not None]
    # What frames say of themselves is said once.
    named = {one.name for one in ops}
    functions = [one for one in frames if one.name not in named]
    text = PARTS[f"{part.part}_ps"]
    if ops:
        listed = ", ".join(_op(one) for one in ops)
        called = f", most of it within {title_of(functions[0].name)}" if functions else ""
        result.append(f"Of {_signed(whole)} ({text}): {listed}{called}.")
    elif functions:
        listed = ", ".join(_op(one) for one in functions)
        result.append(f"Of {_signed(whole)} ({text}): {listed}.")
    left = part.unattributed.difference
    if left * whole > 0 and abs(left) >= _SOME * abs(whole):
        advice = "" if difference.frames else "; a recording of Python frames says more"
        begin = (
            f"{_signed(left)} of it" if result else f"Of {_signed(whole)} ({text}): {_signed(left)}"
        )
        result.append(f"{begin} in no event of the step's threads{advice}.")
    elif not result:
        many = sum(one.part == part.part for one in difference.ops)
        result.append(f"{_signed(whole)} ({text}) is spread over {counted(many, 'op')}.")
    return result


def _most(works: tuple[Work, ...], part: PartDifference) -> list[Work]:
    """Of the rows of a part those that make much of its difference, at most two."""
    whole = part.ps.difference
    return [
        one
        for one in works
        if one.part == part.part
        and one.ps.difference * whole > 0
        and abs(one.ps.difference) >= _SOME * abs(whole)
    ][:_OPS]


def _op(one: Work) -> str:
    now, usual = one.count
    if round(now, 1) == round(usual, 1):
        runs = f"{_number(now)} in both"
    elif not usual:
        runs = f"{_number(now)} instead of none"
    else:
        runs = f"{_number(now)} instead of {_plain(usual)}"
    return f"{_signed(one.ps.difference)} in {title_of(one.name)} ({runs})"


def _number(count: float) -> str:
    return f"{_plain(count)} {'call' if count == 1 else 'calls'}"


def _plain(count: float) -> str:
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"
