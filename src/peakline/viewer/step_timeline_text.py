"""The step timeline as JSON: what each kind of event looks like, and in which order they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from json.encoder import encode_basestring_ascii as quoted

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Columns
from peakline.viewer.lines import Gap, Lines, put_together

__all__ = [
    "ArrowEvents",
    "ExecutionEvents",
    "FreeEvents",
    "TensorEvents",
    "UseEvents",
    "timeline_text",
]

_ALLOCATORS_PID = 0
_HEAD, _TAIL = '{\n    "traceEvents": [\n', b"\n    ]\n}"
_ID = ',\n            "id": '
_ARGS = ',\n            "args": {\n'
_END = "\n        }"
_BREAK = "\\n"


@dataclass(frozen=True, eq=False)
class TensorEvents:
    """One row per output: the tensor (of all ``names``), where and when it was made, its number,
    and the table of outputs that describes it. Times are microseconds here and below.
    """

    names: list[str]
    tensor: Int64Array
    pid: Int64Array
    lane: Int64Array
    start: Int64Array
    end: Int64Array
    ident: Int64Array
    outputs: Columns

    def lines(self) -> Lines:
        """Per row its beginning and its description."""
        tensor = [quoted(name) for name in self.names], self.tensor
        place = self.pid, self.lane
        return Lines(
            self.tensor.size,
            [
                *_event("N", "Tensor", tensor, *place, self.start),
                Gap(_ID, self.ident, _END),
                *_event("O", "Tensor", tensor, *place, self.end - 1),
                Gap(_ID, self.ident, _ARGS),
                *_description(self.outputs),
            ],
        )


@dataclass(frozen=True, eq=False)
class ExecutionEvents:
    """One row per execution; name, type and inputs are those of ``told``."""

    names: list[str]
    ops: list[str]
    inputs: list[list[str]]
    told: Int32Array
    pid: Int64Array
    lane: Int64Array
    start: Int64Array
    duration: Int64Array

    def lines(self) -> Lines:
        """Per row its event."""
        ops, args = [], []
        for name, op, inputs in zip(self.names, self.ops, self.inputs, strict=True):
            ops.append(quoted(op))
            more = "".join(
                f',\n                "input{k}": {quoted(text)}' for k, text in enumerate(inputs)
            )
            args.append(
                f'                "name": {quoted(name)},\n'
                f'                "op": {ops[-1]}{more}\n            }}'
            )
        return Lines(
            self.told.size,
            [
                *_event("X", "Op", (ops, self.told), self.pid, self.lane, self.start),
                Gap(',\n            "dur": ', self.duration, _ARGS),
                Gap("", self.told, _END, args),
            ],
        )


@dataclass(frozen=True, eq=False)
class ArrowEvents:
    """One row per arrow, in the order of the executions (``row``) that they point to: the tensor
    (of all ``names``), and where and when it was made and used.
    """

    names: list[str]
    row: Int64Array
    tensor: Int64Array
    from_pid: Int64Array
    from_lane: Int64Array
    made: Int64Array
    pid: Int64Array
    lane: Int64Array
    used: Int64Array

    def lines(self) -> Lines:
        """Per row both ends."""
        tensor = [quoted(name) for name in self.names], self.tensor
        ident = Gap(_ID, np.arange(self.row.size), _END)
        return Lines(
            self.row.size,
            [
                *_event("s", "DataFlow", tensor, self.from_pid, self.from_lane, self.made),
                ident,
                *_event("t", "DataFlow", tensor, self.pid, self.lane, self.used),
                ident,
            ],
        )


@dataclass(frozen=True, eq=False)
class FreeEvents:
    """One row per tensor: when it was used last."""

    names: list[str]
    pid: Int64Array
    last_use: Int64Array
    ident: Int64Array

    def lines(self) -> Lines:
        """Per row its end."""
        tensor = [quoted(name) for name in self.names], np.arange(self.pid.size)
        lane = np.zeros_like(self.pid)
        return Lines(
            self.pid.size,
            [
                *_event("D", "Tensor", tensor, self.pid, lane, self.last_use),
                Gap(_ID, self.ident, _END),
            ],
        )


@dataclass(frozen=True, eq=False)
class UseEvents:
    """The sum of an allocator's tensors after each change, as numbers of Python where they do
    not fit others.
    """

    allocators: list[str]
    allocator: Int64Array
    when: Int64Array
    total: AnyArray

    def lines(self) -> Lines:
        """Per change the sum after it."""
        names, rows = [quoted(name) for name in self.allocators], self.allocator.size
        zero, total = np.zeros(rows, np.int64), Gap(": ", self.total, "\n            }" + _END)
        if self.total.dtype == object:
            texts = [str(number) for number in self.total.tolist()]
            total = Gap(total.before, np.arange(rows), total.after, texts)
        return Lines(
            rows,
            [
                *_event(
                    "C", "Memory", (names, self.allocator), zero + _ALLOCATORS_PID, zero, self.when
                ),
                Gap(_ARGS + "                ", self.allocator, texts=names),
                total,
            ],
        )


def timeline_text(
    devices: Sequence[str],
    tensors: TensorEvents | None,
    executions: ExecutionEvents,
    arrows: ArrowEvents,
    memory: tuple[FreeEvents, UseEvents] | None,
) -> bytes:
    """The names of the processes, the tensors, all executions with the arrows to them, and the
    memory, four spaces of indentation.
    """
    head = (_HEAD + ",\n".join(_processes(devices))).encode("ascii")
    size, lines = len(head), []

    def behind(several: Lines) -> None:
        nonlocal size
        lines.append((several, size + _before(several.lengths)[:-1]))
        size += int(several.lengths.sum())

    if tensors is not None:
        behind(tensors.lines())
    ran, led = executions.lines(), arrows.lines()
    before, before_arrow = _before(ran.lengths), _before(led.lengths)
    first = np.searchsorted(arrows.row, np.arange(ran.lengths.size))
    lines.append((ran, size + before[:-1] + before_arrow[first]))
    lines.append((led, size + before[arrows.row + 1] + before_arrow[:-1]))
    size += int(before[-1] + before_arrow[-1])
    for events in memory or ():
        behind(events.lines())
    return put_together(size + len(_TAIL), head, lines, _TAIL)


def _before(lengths: Int64Array) -> Int64Array:
    """The sum of all lengths before each one, and of all."""
    return np.append(np.int64(0), np.cumsum(lengths))


def _processes(devices: Sequence[str]) -> list[str]:
    """What names the processes: the allocators, and two for every device."""
    names = ["Allocators"]
    for device in devices:
        names += [f"{device} Compute", f"{device} Tensors"]
    return [
        '        {\n            "name": "process_name",\n            "ph": "M",\n'
        f'            "pid": {pid},\n            "args": {{\n'
        f'                "name": {quoted(name)}\n            }}\n        }}'
        for pid, name in enumerate(names)
    ]


def _event(
    phase: str,
    category: str,
    name: tuple[list[str], AnyArray],
    pid: Int64Array,
    lane: Int64Array,
    when: Int64Array,
) -> list[Gap]:
    """The beginning of an event that has others before it."""
    texts, codes = name
    begin = f',\n        {{\n            "ph": "{phase}",\n            "cat": "{category}"'
    return [
        Gap(f'{begin},\n            "name": ', codes, ',\n            "pid": ', texts),
        Gap("", pid, ',\n            "tid": '),
        Gap("", lane, ',\n            "ts": '),
        Gap("", when),
    ]


def _description(outputs: Columns) -> list[Gap]:
    """The rest of a tensor's event: its TensorDescription in text format."""
    described = outputs.array("has_description")
    placed = described & outputs.array("has_allocation")
    allocators = [
        f"  allocator_name: {name}\n" if name else "" for name in outputs.names("allocator").values
    ]
    types = [_type_text(name) for name in outputs.names("data_type").values]
    shapes = [_shape_text(shape) for shape in outputs.names("shape").values]

    def text(texts: Sequence[str], codes: AnyArray, before: str = "", after: str = "") -> Gap:
        inside = ["", *(quoted(text)[1:-1] for text in texts)]
        return Gap(before, codes, after, inside)

    def number(label: str, column: str) -> Gap:
        valid = placed & outputs.is_valid(column)
        values = np.where(valid, outputs.array(column), 0)
        return Gap(f"  {label}: ", values, _BREAK, unless_zero=True)

    def of(column: str, where: BoolArray) -> Int32Array:
        return np.where(where, outputs.names(column).codes + 1, 0)

    single = placed & outputs.array("has_single_reference")
    snapshot = '                "snapshot": {\n                    "tensor_description": "'
    return [
        text(types, of("data_type", described), before=snapshot),
        text(shapes, of("shape", described)),
        text(["allocation_description {\n"], placed),
        number("requested_bytes", "requested_bytes"),
        number("allocated_bytes", "allocated_bytes"),
        text(allocators, of("allocator", placed)),
        number("allocation_id", "allocation_id"),
        text(["  has_single_reference: true\n"], single),
        number("ptr", "address"),
        text(["}\n"], placed, after=f'"\n                }}\n            }}{_END}'),
    ]


@cache
def _type_text(data_type: str) -> str:
    name = f"DT_{data_type.upper()}"
    known = schema.POOL.FindEnumTypeByName("tensorflow.DataType").values_by_name
    if name in known:
        return f"dtype: {name}\n" if known[name].number else ""
    return f"dtype: {data_type}\n" if data_type.lstrip("-").isdigit() else ""


@cache
def _shape_text(shape: str) -> str:
    if not shape.startswith("["):
        return "shape {\n  unknown_rank: true\n}\n"
    sizes = [size.strip() for size in shape[1:-1].split(",") if size.strip()]
    dims = ["-1" if size == "?" else size for size in sizes]
    inner = "".join(
        "  dim {\n  }\n" if size == "0" else f"  dim {{\n    size: {size}\n  }}\n" for size in dims
    )
    return f"shape {{\n{inner}}}\n"
