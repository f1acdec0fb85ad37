"""What profilers write in texts and stats: turns of loops, launches of kernels, links of events.

The stats by which profilers of XLA and TensorFlow link events are those of XSpaces and of traces
made of them:

- A GPU's work and its launch have the same ``correlation_id``; one launch of a command buffer may
have many pieces of work.
- On a TPU the host event that enqueues a program produces a context (``_pt``, ``_p``) that the run
of the program consumes (``_ct``, ``_c``); without one, both have the same ``run_id``,
``queue_id`` and ``core_type`` for the device. The same contexts tie host threads to one another:
work handed to a thread pool.

Sources: ``xplane_schema.cc`` and ``context_types.h`` of tsl.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables.columns import Columns, Names
from peakline.tables.event_rules import Dim, LaunchParameters, LinkStats

_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,20})[ \t\n\v\f\r]*")
_MOST = 2**32
WORDS: Mapping[str, str] = {
    "regs": "registers", "static_shared": "static_shared", "group_mem": "static_shared",
    "dynamic_shared": "dynamic_shared",
}  # fmt: skip
"""What NVIDIA's and AMD's words for parameters of a launch set."""


def parse_details(text: str, words: Mapping[str, str] = WORDS) -> LaunchParameters:
    """The parameters in a ``kernel_details`` text: ``key:value``, separated by blanks or newlines.

    ``words`` gives for keys of whole numbers the parameter that they set.
    """
    result = LaunchParameters()._asdict()
    for token in re.split("[ \n]", text):
        key, colon, value = token.partition(":")
        if not colon or ":" in value:
            continue
        if key == "occ_pct":
            result["occupancy_percent"] = real(value, result["occupancy_percent"])
        elif key in ("grid", "block"):
            result[key] = dim(value, result[key])
        elif key in words and (number := unsigned(value)) is not None:
            result[words[key]] = number
    return LaunchParameters(**result)


def dim(text: str, otherwise: Dim = (1, 1, 1)) -> Dim:
    """``4,64,1``; ``otherwise`` for any other text."""
    sizes = [unsigned(size) for size in text.split(",")]
    if len(sizes) != 3 or None in sizes:
        return otherwise
    x, y, z = (size or 0 for size in sizes)
    return x, y, z


def unsigned(text: str) -> int | None:
    """A whole number below 2^32; None for any other text."""
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < _MOST else None


def real(text: str, otherwise: float = 0.0) -> float:
    """A number as C reads it; ``otherwise`` for any other text."""
    try:
        return float.fromhex(text) if "0x" in text.lower() else float(text.replace("_", "?"))
    except (ValueError, OverflowError):
        return otherwise


CORRELATION = LinkStats("correlation", ("correlation_id",), ("correlation_id",))
_RUN = ("run_id", "queue_id", "core_type")
OF_TPUS = (
    LinkStats("context", ("_pt", "_p"), ("_ct", "_c"), is_handed_on=True),
    LinkStats("run", _RUN, _RUN, device="device_ordinal", has_zero=True),
)


_PART = re.compile(
    r"(?i)(?:forward|backward|optimi[sz]er|\bloss|zero_?grad|data_?load|fetch|next_batch|to_device|"
    r"h2d|d2h|copy|all_?reduce|all_?gather|logging|checkpoint|save|warm_?up)"
)
"""What only a part of a turn is called."""


def outermost(rows: AnyArray, start: AnyArray, duration: AnyArray) -> AnyArray:
    """Of ``rows``, events of one thread, those that begin when the ones before them have ended."""
    rows = rows[np.lexsort((-duration[rows], start[rows]))]
    end = start[rows] + duration[rows]
    before = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], end[:-1]]))
    return rows[start[rows] >= before]


def turns(rows: AnyArray, names: Names, is_other: Callable[[str], object]) -> AnyArray:
    """Of ``rows``, called ``names``, those that can each be a turn of a loop: called the same
    twice or more, not as a part of a turn, and not as ``is_other`` says.
    """
    codes, counts = np.unique(names.codes, return_counts=True)
    fit = [
        code
        for code, many in zip(codes.tolist(), counts.tolist(), strict=True)
        if many > 1
        and code >= 0
        and not is_other(names.values[code])
        and not _PART.search(names.values[code])
    ]
    return rows[np.isin(names.codes, fit)]


def counted(names: Iterable[str]) -> list[str]:
    """Each name with its number among its like, from 0 on."""
    numbers: dict[str, Iterator[int]] = defaultdict(count)
    return [f"{name} {next(numbers[name])}" for name in names]


def steps_columns(
    ids: Int64Array, names: Sequence[str], start: Int64Array, end: Int64Array, found_by: Names,
    is_cut_off: BoolArray | None = None,
) -> Columns:  # fmt: skip
    """The ``steps`` table, of steps that are whole unless ``is_cut_off`` says otherwise."""
    return Columns(
        {
            "step_id": ids,
            "name": Names.encode(names),
            "start_ps": start,
            "end_ps": end,
            "found_by": found_by,
            "is_cut_off": np.zeros(ids.size, np.bool_) if is_cut_off is None else is_cut_off,
        }
    )
