"""Element types and shapes, spelled as the runtime does."""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

from peakline import schema
from peakline.arrays import AnyArray
from peakline.formats.xplane.memory import data_type_name
from peakline.tables.columns import Names


def data_types(numbers: AnyArray, *, null: int | None = 0) -> Names:
    """The names of DataType numbers: ``DT_FLOAT`` is ``float``; ``null``, which says nothing, is
    null.
    """
    result = np.unique(numbers)
    # Far cheaper than the inverse of `np.unique`, which sorts positions.
    codes = np.searchsorted(result, numbers)
    named = (codes if null is None else np.where(numbers == null, -1, codes)).astype(np.int32)
    return Names(named, [data_type_name(number) for number in result.tolist()])


def shape_text(message: bytes) -> str | None:
    """A TensorShapeProto as ``[3, 3, 512, 512]``; None when it cannot be read.

    An unknown size is ``?``, a shape of unknown rank ``<unknown>`` (``tensor_shape.cc``).
    """
    shape = schema.TensorShapeProto()
    try:
        shape.ParseFromString(message)
    except DecodeError:
        return None
    if shape.unknown_rank:
        return "<unknown>"
    sizes = ("?" if dim.size < 0 else str(dim.size) for dim in shape.dim)
    return f"[{', '.join(sizes)}]"
