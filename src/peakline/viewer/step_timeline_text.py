"""The step timeline as JSON: what each kind of event looks like, and in which order they come."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as quoted

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Columns
from peakline.text import check_length, remembered
from peakline.viewer.lines import Gap, Lines, put_together

_ALLOCATORS_PID = 0
_HEAD, _TAIL = '{\n    "traceEvents": [\n', b"\n    ]\n}"
_ID = ',\n            "id": '
_ARGS = ',\n            "args": {\n'
_END = "\n        }"
_BREAK = "\\n"


def tensor_lines(
    names: list[str],
    tensor: Int64Array,
    pid: Int64Array,
    lane: Int64Array,
    start: Int64Array,
    end: Int64Array,
    ident: Int64Array,
    outputs: Columns,
) -> Lines:
    """One row per output: the tensor (of all ``names``), where and when it was made, its number,
    and the table of outputs that describes it. Times are microseconds here and below.
    """
    named, place = ([quoted(name) for name in names], tensor), (pid, lane)
    return Lines(
        tensor.size,
        [
            *_event("N", "Tensor", named, *place, start),
            Gap(_ID, ident, _END),
            *_event("O", "Tensor", named, *place, end - 1),
            Gap(_ID, ident, _ARGS),
            *_description(outputs),
        ],
    )


def execution_lines(
    names: list[str],
    ops: list[str],
    inputs: list[list[str]],
    named: Int32Array,
    pid: Int64Array,
    lane: Int64Array,
    start: Int64Array,
    duration: Int64Array,
) -> Lines:
    """One row per execution; name, type and inputs are those of ``named``."""
    types, args = [quoted(op) for op in ops], []
    for name, op, texts in zip(names, types, inputs, strict=True):
        more = "".join(
            f',\n                "input{k}": {quoted(text)}' for k, text in enumerate(texts)
        )
        args.append(
            f'                "name": {quoted(name)},\n'
            f'                "op": {op}{more}\n            }}'
        )
    return Lines(
        named.size,
        [
            *_event("X", "Op", (types, named), pid, lane, start),
            Gap(',\n            "dur": ', duration, _ARGS),
            Gap("", named, _END, args),
        ],
    )


def arrow_lines(
    names: list[str],
    row: Int64Array,
    tensor: Int64Array,
    from_pid: Int64Array,
    from_lane: Int64Array,
    made: Int64Array,
    pid: Int64Array,
    lane: Int64Array,
    used: Int64Array,
) -> Lines:
    """One row per arrow, in the order of the executions (``row``) that they point to: the tensor
    (of all ``names``), and where and when it was made and used.
    """
    named = [quoted(name) for name in names], tensor
    ident = Gap(_ID, np.arange(row.size), _END)
    return Lines(
        row.size,
        [
            *_event("s", "DataFlow", named, from_pid, from_lane, made),
            ident,
            *_event("t", "DataFlow", named, pid, lane, used),
            ident,
        ],
    )


def free_lines(names: list[str], pid: Int64Array, last_use: Int64Array, ident: Int64Array) -> Lines:
    """One row per tensor: when it was used last."""
    named, lane = ([quoted(name) for name in names], np.arange(pid.size)), np.zeros_like(pid)
    return Lines(
        pid.size, [*_event("D", "Tensor", named, pid, lane, last_use), Gap(_ID, ident, _END)]
    )


def use_lines(
    allocators: list[str], allocator: Int64Array, when: Int64Array, total: AnyArray
) -> Lines:
    """The sum of an allocator's tensors after each change, as numbers of Python where they do
    not fit others.
    """
    names, rows = [quoted(name) for name in allocators], allocator.size
    zero, after = np.zeros(rows, np.int64), "\n            }" + _END
    if total.dtype == object:
        texts = [str(number) for number in total.tolist()]
        value = Gap(": ", np.arange(rows), after, texts)
    else:
        value = Gap(": ", total, after)
    return Lines(
        rows,
        [
            *_event("C", "Memory", (names, allocator), zero + _ALLOCATORS_PID, zero, when),
            Gap(_ARGS + "                ", allocator, texts=names),
            value,
        ],
    )


def timeline_text(
    devices: Sequence[str],
    tensors: Lines | None,
    ran: Lines,
    led: Lines,
    row: Int64Array,
    memory: Sequence[Lines],
) -> bytes:
    """The names of the processes, the tensors, all executions with the arrows to them, and the
    memory, four spaces of indentation; ``row`` is the execution that each arrow points to.
    """
    head = (_HEAD + ",\n".join(_processes(devices))).encode("ascii")
    size, lines = len(head), []

    def behind(several: Lines) -> None:
        nonlocal size
        lines.append((several, size + _before(several.lengths)[:-1]))
        size += int(several.lengths.sum())

    if tensors is not None:
        behind(tensors)
    before, before_arrow = _before(ran.lengths), _before(led.lengths)
    first = np.searchsorted(row, np.arange(ran.lengths.size))
    lines.append((ran, size + before[:-1] + before_arrow[first]))
    lines.append((led, size + before[row + 1] + before_arrow[:-1]))
    size += int(before[-1] + before_arrow[-1])
    for events in memory:
        behind(events)
    check_length(size, sum(several.source_bytes for several, _ in lines))
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


@remembered(1 << 8)
def _type_text(data_type: str) -> str:
    name = f"DT_{data_type.upper()}"
    known = schema.POOL.FindEnumTypeByName("tensorflow.DataType").values_by_name
    if name in known:
        return f"dtype: {name}\n" if known[name].number else ""
    return f"dtype: {data_type}\n" if data_type.lstrip("-").isdigit() else ""


@remembered(1 << 12)
def _shape_text(shape: str) -> str:
    if not shape.startswith("["):
        return "shape {\n  unknown_rank: true\n}\n"
    sizes = [size.strip() for size in shape[1:-1].split(",") if size.strip()]
    dims = ["-1" if size == "?" else size for size in sizes]
    inner = "".join(
        "  dim {\n  }\n" if size == "0" else f"  dim {{\n    size: {size}\n  }}\n" for size in dims
    )
    return f"shape {{\n{inner}}}\n"
