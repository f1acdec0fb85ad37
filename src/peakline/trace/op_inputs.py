"""What profilers record of an op's inputs: their shapes and element types."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.event_rules import InputStats
from peakline.tables.once import once
from peakline.trace.events import trace_of

DIMS, STRIDES = "dims", "strides"
"""The stats of `InputStats` that `texts_of` reads."""
_MOST_ELEMENTS = 1 << 62
_FLOATING = re.compile(r'"(?:c10::)?(?:complex<)?(float|double|Half|BFloat16|Float8\w*)>?"')
_TENSOR = re.compile(
    r'"(?:c10::)?(?:float|double|Half|BFloat16|int|long int|long|short|char|signed char|'
    r'unsigned char|bool|complex<\w+>|Float8\w*)"'
)


@dataclass(frozen=True, eq=False, repr=False)
class OpInputs(Brief):
    """Per event of the trace the code of its shapes and of its types, -1 where none is known."""

    shape: Int32Array
    shapes: tuple[str, ...]
    types: Int32Array
    type_texts: tuple[str, ...]

    @property
    def is_recorded(self) -> bool:
        """Whether any shape is."""
        return bool(self.shapes)

    def dims(self, events: Int64Array) -> Int32Array:
        """The code of the shape of each event's largest input, -1 where none is known."""
        return self.shape[events] if self.shape.size else np.full(events.size, -1, np.int32)

    def dims_text(self, code: int) -> str:
        """``[256, 512]``; empty for -1."""
        return self.shapes[code] if code >= 0 else ""

    @cached_property
    def has_tensor(self) -> BoolArray:
        """Per event whether the type of an input that is a tensor is known."""
        table = [bool(_TENSOR.search(text)) for text in self.type_texts]
        result: BoolArray = np.array([*table, False], np.bool_)[self.types]
        return result

    @cached_property
    def is_float64(self) -> BoolArray:
        """Per event whether all inputs that are tensors of floating point are float64.

        A number that is given to an op is a tensor of float64 too, beside those of other types.
        """
        table = [set(_FLOATING.findall(text)) == {"double"} for text in self.type_texts]
        result: BoolArray = np.array([*table, False], np.bool_)[self.types]
        return result


def _stats_of(profile: Profile) -> InputStats | None:
    """The stats of inputs; None where the profile's format has none."""
    has_stats = trace_of(profile).source == "events" and "event_stats" in profile.tables
    return profile.event_rules.inputs if has_stats else None


@once
def inputs_of(profile: Profile) -> OpInputs:
    """The inputs of all events, read once.

    Raises InputError when the profile cannot be read.
    """
    trace, inputs = trace_of(profile), _stats_of(profile)
    none = np.broadcast_to(np.int32(-1), trace.size)  # no memory for what few profiles record
    if inputs is None:
        return OpInputs(none, (), none, ())
    stats = profile.typed_stats(frozenset((inputs.dims, inputs.types)))
    names, texts = stats.names("name"), stats.names("text")
    place = trace.places(stats.array("event_id"))
    result = []
    for name in (inputs.dims, inputs.types):
        mine = (names.codes == names.code_of(name)) & (place >= 0)
        codes, known = np.unique(texts.codes[mine], return_inverse=True)
        words = [texts.values[code] if code >= 0 else "" for code in codes.tolist()]
        words = [_largest(word) for word in words] if name == inputs.dims else words
        distinct = {word: number for number, word in enumerate(dict.fromkeys(words))}
        number = np.array([distinct[word] for word in words], np.int32)
        column = none
        if number.size:
            column = none.copy()
            column[place[mine]] = number[known]
        result.append((column, tuple(distinct)))
    return OpInputs(*result[0], *result[1])


@once
def texts_of(profile: Profile, which: str) -> tuple[Int32Array, tuple[str, ...]]:
    """Per event the code of the text of an input stat (`DIMS`, `STRIDES`), -1 where none is
    recorded; and the texts.
    """
    trace, inputs = trace_of(profile), _stats_of(profile)
    result = np.full(trace.size, -1, np.int32)
    if inputs is None:
        return result, ()
    stats = profile.typed_stats(frozenset((inputs.dims if which == DIMS else inputs.strides,)))
    texts = stats.names("text")
    place = trace.places(stats.array("event_id"))
    mine = (place >= 0) & (texts.codes >= 0)
    result[place[mine]] = texts.codes[mine]
    return result, tuple(texts.values)


def elements_read(dims: str, strides: str) -> int:
    """How many numbers the largest input holds: what is expanded (stride 0) is there once.

    ``dims`` and ``strides`` are lists of lists as PyTorch writes them; 0 where they are none.
    """
    try:
        shapes, steps = json.loads(dims), json.loads(strides or "[]")
    except (ValueError, RecursionError):
        return 0
    most = 0
    for number, shape in enumerate(shapes if isinstance(shapes, list) else ()):
        own = steps[number] if isinstance(steps, list) and number < len(steps) else []
        if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
            continue
        is_whole = not isinstance(own, list) or len(own) != len(shape)
        sides = shape if is_whole else [a for a, b in zip(shape, own, strict=True) if b]
        most = max(most, _elements(sides) if shape else 0)
    return most


def _elements(sides: list[int]) -> int:
    """How many elements a tensor with these sides has, at most `_MOST_ELEMENTS`."""
    count = 1
    for side in sides:
        count = max(min(count * side, _MOST_ELEMENTS), -_MOST_ELEMENTS)
    return count


@once
def all_dims_of(profile: Profile) -> tuple[Int32Array, tuple[str, ...]]:
    """Per event the code of the shapes of all its inputs that are tensors, -1 where none is known;
    and the texts, ``[8, 64], [64, 4]``.

    Raises InputError when the profile cannot be read.
    """
    trace, inputs = trace_of(profile), _stats_of(profile)
    result = np.full(trace.size, -1, np.int32)
    if inputs is None:
        return result, ()
    stats = profile.typed_stats(frozenset((inputs.dims,)))
    texts = stats.names("text")
    place = trace.places(stats.array("event_id"))
    mine = (place >= 0) & (texts.codes >= 0)
    codes, known = np.unique(texts.codes[mine], return_inverse=True)
    words = [_tensors(texts.values[code]) for code in codes.tolist()]
    distinct = {word: number for number, word in enumerate(dict.fromkeys(filter(None, words)))}
    number = np.array([distinct.get(word, -1) for word in words], np.int32)
    result[place[mine]] = number[known] if number.size else number
    return result, tuple(distinct)


def _tensors(dims: str) -> str:
    """The shapes of inputs that are tensors with dimensions: a number has none."""
    try:
        shapes = json.loads(dims)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(shapes, list):
        return ""
    return ", ".join(str(shape) for shape in shapes if isinstance(shape, list) and shape)


def _largest(dims: str) -> str:
    """Of the shapes of all inputs, a list of lists, the one with most elements."""
    try:
        shapes = json.loads(dims)
    except (ValueError, RecursionError):
        return ""
    best, most = "", 0
    for shape in shapes if isinstance(shapes, list) else ():
        if isinstance(shape, list) and shape and all(isinstance(size, int) for size in shape):
            size = _elements(shape)
            if size > most:
                best, most = str(shape), size
    return best


@lru_cache(1 << 12)
def elements_of(dims: str) -> tuple[int, ...]:
    """Of each input how many elements it has, those of a list in all; -1 for what is no tensor.

    >>> elements_of("[[2, 3], [], [[4], [5, 6]]]")
    (6, -1, 34)
    """
    try:
        shapes = json.loads(dims)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(shapes, list):
        return ()
    return tuple(_total(shape) if shape else -1 for shape in shapes)


def _total(shape: object) -> int:
    """The elements of a tensor's shape, or of a list of them."""
    if not isinstance(shape, list):
        return -1
    if all(type(side) is int for side in shape):
        return _elements(shape)
    inner = [_total(one) for one in shape]
    return -1 if min(inner) < 0 else sum(inner)


def element_type(types: str) -> str | None:
    """The first of the types of inputs that is one of elements of tensors; None without any."""
    try:
        texts = json.loads(types)
    except (ValueError, RecursionError):
        return None
    texts = texts if isinstance(texts, list) else []
    return next((one for one in texts if isinstance(one, str) and _TENSOR.search(f'"{one}"')), None)
