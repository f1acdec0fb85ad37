"""Two HloModuleProtos compared: everything but ids, for which the names stand that they mean."""

import re
from typing import Any

from google.protobuf.message import Message

# Left out of a translation on purpose.
_LEFT_OUT = {
    "sharding", "statistics_viz", "original_value", "result_accuracy", "id",
    "domain_entry_sharding", "domain_exit_sharding",
}  # fmt: skip
_MODULE = ("name", "entry_computation_name", "input_output_alias", "buffer_donor",
           "frontend_attributes")  # fmt: skip
_FOUR_BITS = {21, 22, 26, 27, 30, 31}
_TUPLE = 13


def differences(one: Any, other: Any) -> list[str]:
    """What is not the same, in words."""
    result = [
        f"{name}: {getattr(one, name)!r:.300} / {getattr(other, name)!r:.300}"
        for name in _MODULE
        if getattr(one, name) != getattr(other, name)
    ]
    first, second = _named(one), _named(other)
    result += [f"only one has {key}" for key in first.keys() ^ second.keys()]
    for key in first.keys() & second.keys():
        a, b = first[key], second[key]
        result += [
            f"{key} {name}: {a.get(name)!s:.300} / {b.get(name)!s:.300}"
            for name in sorted(a.keys() | b.keys())
            if a.get(name) != b.get(name)
        ]
    if _schedule(one) != _schedule(other):
        result.append(f"schedule: {_schedule(one)} / {_schedule(other)}")
    shapes = [_without_names(module.host_program_shape) for module in (one, other)]
    if shapes[0] != shapes[1]:
        result.append(f"host_program_shape: {shapes[0]!s:.300} / {shapes[1]!s:.300}")
    return result


def _without_names(shape: Any) -> Any:
    copy = type(shape)()
    copy.CopyFrom(shape)
    copy.ClearField("parameter_names")
    return copy


def _schedule(module: Any) -> dict[str, list[str]]:
    computations = {one.id: one for one in module.computations}
    result = {}
    for number, sequence in module.schedule.sequences.items():
        name = _plain(computations[number].name)
        if name == "async":
            result[name] = ["" for _ in sequence.instruction_ids]
            continue
        names = _short(computations[number])
        result[name] = [names[one] for one in sequence.instruction_ids]
    return result


def _short(computation: Any) -> dict[int, str]:
    """Names by id, without the numbers at their ends where they do not need them: XLA's parser
    gives numbers to names that another computation has, too.
    """
    names = {one.id: one.name for one in computation.instructions}
    short = {number: re.sub(r"(\.\d+)+$", "", name) for number, name in names.items()}
    return short if len({*short.values()}) == len(short) else names


def _plain(name: str) -> str:
    """Names that a parser makes up for asynchronous calls differ in their ends."""
    for start in ("async_wrapped", "async_param", "param_"):
        if name.startswith(start):
            return "async"
    return name


def _named(module: Any) -> dict[tuple[str, str], dict[str, Any]]:
    computations = {one.id: _plain(one.name) for one in module.computations}
    index = module.stack_frame_index
    result: dict[tuple[str, str], dict[str, Any]] = {}
    for one in module.computations:
        if _plain(one.name) == "async":
            key = "async", ""
            result[key] = {
                "opcodes": [made.opcode for made in one.instructions],
                "fields": [_fields(made, {}, computations, index) for made in one.instructions],
                "thread": one.execution_thread,
            }
            continue
        names = _short(one)
        for made in one.instructions:
            result[one.name, names[made.id]] = _fields(
                made, names, computations, module.stack_frame_index
            )
        result[one.name, ""] = {
            "root": names[one.root_id],
            "is_fusion_computation": one.is_fusion_computation,
            "program_shape": _without_names(one.program_shape),
            "thread": one.execution_thread,
            "instructions": len(one.instructions),
        }
    return result


def _frames(index: Any, number: int) -> list[tuple[Any, ...]]:
    """Where an instruction comes from, its callers behind it."""
    result = []
    while number:
        frame = index.stack_frames[number - 1]
        place = index.file_locations[frame.file_location_id - 1]
        result.append(
            (
                index.file_names[place.file_name_id - 1],
                index.function_names[place.function_name_id - 1],
                *(place.line, place.end_line, place.column, place.end_column),
            )
        )
        number = frame.parent_frame_id
    return result


def _fields(
    made: Any, names: dict[int, str], computations: dict[int, str], index: Any
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for field, value in made.ListFields():
        name = field.name
        if name in _LEFT_OUT or (isinstance(value, Message) and not value.ListFields()):
            continue
        if name in {"operand_ids", "control_predecessor_ids"}:
            result[name] = [names.get(one) for one in value]
        elif name == "called_computation_ids":
            result[name] = [computations[one] for one in value]
        elif name == "literal":
            shape = value.shape
            if not (shape.dimensions or shape.element_type in {_TUPLE, *_FOUR_BITS}):
                result[name] = value
        elif name == "metadata":
            # XLA's parser counts the frames anew.
            plain = type(value)()
            plain.CopyFrom(value)
            plain.ClearField("stack_frame_id")
            result[name] = plain
            result["frames"] = _frames(index, value.stack_frame_id)
        elif name == "backend_config":
            # XLA's parser takes an empty list out that its own messages have no more.
            result[name] = value.replace(b'"wait_on_operation_queues": [],', b"")
        elif name == "precision_config" and not (any(value.operand_precision) or value.algorithm):
            # What a text does not say is the default.
            continue
        elif name != "name":
            result[name] = value
    return result
