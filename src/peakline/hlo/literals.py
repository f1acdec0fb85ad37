"""The value of a constant as XLA writes it in one line (``xla/literal.cc``)."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import numpy as np

from peakline.hlo.program import elements, kind_of
from peakline.hlo.shape_texts import kind_name

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, LiteralProto

_MOST = 10
_HIDDEN = "{...}"
_REPEATED = {
    "pred": "preds", "s32": "s32s", "s64": "s64s", "u32": "u32s", "u64": "u64s", "f32": "f32s",
    "f64": "f64s",
}  # fmt: skip
_PACKED = {
    "s8": ("s8s", "b"), "u8": ("u8s", "B"), "s16": ("s16s", "<h"), "u16": ("u16s", "<H"),
    "f16": ("f16s", "<e"),
}  # fmt: skip
_DIGITS = {"f32": (6, 9), "f64": (15, 17), "bf16": (4,), "f16": (5,)}
"""How many digits are written; more where the first do not give the number back."""


def constant_text(made: HloInstructionProto) -> str:
    """The value of a constant of at most ten numbers, of kinds that are written as such; of any
    other ``{...}``.
    """
    if elements(made.shape) > _MOST or kind_of(made.shape) == "tuple":
        return _HIDDEN
    texts = _texts(made.literal)
    sizes = list(made.shape.dimensions)
    if texts is None or len(texts) != math.prod(sizes):
        return _HIDDEN
    return _nested(_logical(texts, sizes, list(made.literal.shape.layout.minor_to_major)), sizes)


def _logical(texts: list[str], sizes: list[int], order: list[int]) -> list[str]:
    """The values, stored with the dimension that ``order`` names first as the fastest, in order."""
    if sorted(order) != list(range(len(sizes))):
        return texts
    stored = np.array(texts, object).reshape([sizes[place] for place in reversed(order)])
    where = [list(reversed(order)).index(place) for place in range(len(sizes))]
    return list(stored.transpose(where).ravel())


def _nested(texts: list[str], sizes: list[int]) -> str:
    if not sizes:
        return texts[0]
    if len(sizes) == 1:
        return "{" + ", ".join(texts) + "}"
    count = len(texts) // sizes[0] if sizes[0] else 0
    parts = [_nested(texts[n * count : (n + 1) * count], sizes[1:]) for n in range(sizes[0])]
    return "{ " + ", ".join(parts) + " }"


def _texts(literal: LiteralProto) -> list[str] | None:
    kind = kind_name(literal.shape.element_type)
    if kind in _REPEATED:
        values = list(getattr(literal, _REPEATED[kind]))
    elif kind in _PACKED:
        name, form = _PACKED[kind]
        data: bytes = getattr(literal, name)
        size = struct.calcsize(form)
        values = [one for (one,) in struct.iter_unpack(form, data[: len(data) // size * size])]
    elif kind == "bf16":
        data = literal.bf16s[: len(literal.bf16s) // 2 * 2]
        halves = np.frombuffer(data, "<u2").astype(np.uint32) << 16
        values = halves.view(np.float32).tolist()
    else:
        return None
    return [_number(value, kind) for value in values]


def _number(value: float, kind: str) -> str:
    if kind == "pred":
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "nan" if math.copysign(1, value) > 0 else "-nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    for digits in _DIGITS[kind]:
        text = f"{value:.{digits}g}"
        if len(_DIGITS[kind]) == 1 or _rounded(float(text), kind) == value:
            return text
    return text


def _rounded(value: float, kind: str) -> float:
    return float(np.float32(value)) if kind == "f32" else value
