"""What XLA writes into the nodes of a drawing (``hlo_graph_dumper.cc``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from peakline.formats.hlo_proto.shapes import bounded_product
from peakline.hlo.printing.instructions import backend_text
from peakline.hlo.printing.literals import UnreadableLiteral, literal_text
from peakline.hlo.printing.shapes import with_layout, without_layout
from peakline.hlo.program import CONVOLUTIONS, MATRIX_PRODUCTS, kind_of
from peakline.text import whole_number

if TYPE_CHECKING:
    from peakline.schema import HloModuleProto, ShapeProto
    from peakline.xprof.graph_viewer.linked import Computation, Instruction

_PRODUCTS = MATRIX_PRODUCTS - {"__cublas$gemm"}
SMALL_BELOW = 4096
_FEW, _LONGEST_VALUE, _LONGEST_SHAPE = 8, 64, 64
_ALONE = ("tuple", "token", "opaque", "buffer")
_TRIVIAL = {
    "add": "add", "multiply": "multiply", "minimum": "min", "maximum": "max", "xor": "xor",
    "and": "and", "or": "or",
}  # fmt: skip
_COMPARED = {
    "LE": "less-or-equal", "GE": "greater-or-equal", "GT": "greater-than", "LT": "less-than",
    "EQ": "equal-to", "NE": "not-equal-to",
}  # fmt: skip


def sane(text: str) -> str:
    """Text for a label that looks like HTML."""
    return text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def arrays(shape: ShapeProto) -> Iterator[ShapeProto]:
    """The parts of a shape that are no tuples."""
    waiting = [shape]
    while waiting:
        part = waiting.pop()
        if kind_of(part) == "tuple":
            waiting.extend(part.tuple_shapes)
        else:
            yield part


def is_small(made: Instruction) -> bool:
    """Whether XLA takes a result for small."""
    parts = list(arrays(made.proto.shape))
    if any(kind_of(part) in ("opaque", "token") for part in parts):
        return True
    return sum(bounded_product(part.dimensions) for part in parts) < SMALL_BELOW


def is_scalar(shape: ShapeProto) -> bool:
    """Whether an array has one element."""
    return kind_of(shape) not in _ALONE and bounded_product(shape.dimensions) == 1


def trivial(computation: Computation) -> str | None:
    """What a computation of two scalars does, in one word."""
    root = computation.root
    if len(computation.made) != 3 or len(root.operands) != 2:
        return None
    numbers = sorted(
        one.proto.parameter_number for one in root.operands if one.opcode == "parameter"
    )
    shapes = [root.proto.shape, *(one.proto.shape for one in root.operands)]
    if numbers != [0, 1] or not all(map(is_scalar, shapes)):
        return None
    if root.opcode == "compare":
        return _COMPARED.get(root.proto.comparison_direction)
    return _TRIVIAL.get(root.opcode)


def shape_line(made: Instruction) -> str:
    """The shape, with layouts where there is more than one way to lie."""
    shape = made.proto.shape
    is_wide = any(len(part.dimensions) > 1 for part in arrays(shape))
    text = with_layout(shape) if is_wide and made.opcode != "tuple" else without_layout(shape)
    return sane(text if len(text) <= _LONGEST_SHAPE else f"{text[: _LONGEST_SHAPE - 3]}...")


def constant_text(made: Instruction, shape: ShapeProto) -> str:
    """A constant within the node that uses it, drawn with a shape that it is made to."""
    own = made.proto.shape
    if 0 in shape.dimensions and kind_of(shape) not in _ALONE:
        return f"{{}} ({without_layout(own)})"
    if kind_of(shape) not in _ALONE and bounded_product(own.dimensions) <= _FEW:
        text = _value(made)
        if text is not None and len(text) <= _LONGEST_VALUE:
            return f"{without_layout(shape)} {text}"
    name = made.name if made.name.startswith("constant") else f"constant {made.name}"
    return f"{name} {without_layout(shape)}"


def _value(made: Instruction) -> str | None:
    """The elements on several lines, as XLA breaks them."""
    if not made.proto.HasField("literal"):
        return None
    try:
        text = "".join(literal_text(made.proto.literal))
    except UnreadableLiteral:
        return None
    depth = len(made.proto.literal.shape.dimensions)
    return text if depth < 2 else _broken(text, depth)


def _broken(text: str, depth: int) -> str:
    """One line as several: only the innermost rows stay whole."""
    lines, level, place = [""], 0, 0
    while place < len(text):
        if text[place] == "{":
            level += 1
            if level == depth:
                end = text.index("}", place) + 1
                lines[-1] += f"  {text[place:end]}"
                level, place = level - 1, end
                continue
            lines[-1] += "{"
            rest = text[place + 1 :].lstrip(" ")
            if rest.startswith("/*"):
                comment = rest[: rest.index("*/") + 2]
                lines[-1] += f" {comment}"
                rest = rest[len(comment) :].lstrip(" ")
            place = len(text) - len(rest)
            lines.append("")
        elif text[place] == "}":
            level -= 1
            lines.append("}")
            place += 1
        elif text[place] == ",":
            lines[-1] += ","
            lines.append("")
            place += 1
        else:
            place += 1
    return "\n".join(lines)


def config_text(made: Instruction, *, is_shown: bool) -> str:
    """What the back end is given: of cuBLASLt and cuDNN what matters, else all where wanted."""
    proto = made.proto
    target = proto.custom_call_target if made.opcode == "custom-call" else ""
    lines: list[str] = []
    if target in _PRODUCTS:
        lines = _product(made)
    elif target in CONVOLUTIONS:
        lines = _convolution(made)
    if lines:
        return ("<br/>" if len(lines) > 1 else "") + "<br/>".join(lines)
    if not is_shown or not (raw := backend_text(proto.backend_config)):
        return ""
    return f'backend_config="{raw}"'


def _config(made: Instruction, name: str) -> dict[str, Any] | None:
    """The part of the configuration of a name; None where there is no configuration to read."""
    try:
        config = json.loads(made.proto.backend_config or b"{}")
    except (ValueError, RecursionError):
        return None
    result = config.get(name) if isinstance(config, dict) else None
    return result if isinstance(result, dict) else {}


def _convolution(made: Instruction) -> list[str]:
    given = _config(made, "cudnn_conv_backend_config")
    if given is None:
        return []
    scale, side = _number(given, "conv_result_scale"), _number(given, "side_input_scale")
    mode = str(given.get("activation_mode", "kNone"))
    lines = [] if scale == 1 else [f"conv_result_scale={scale:.6g}"]
    if side not in (0, 1):
        lines.append(f"side_input_scale={side:.6g}")
    if mode == "kLeakyRelu":
        lines.append(f"leakyrelu_alpha={_number(given, 'leakyrelu_alpha'):.6g}")
    lines.append(f"activation_mode={mode.removeprefix('k').lower()}")
    algorithm = _object(given, "algorithm")
    knobs = sorted(
        (whole_number(key) or 0, key, value)
        for key, value in _object(algorithm, "tuning_knobs").items()
    )
    turned = ",".join(f"k{key}={value}" for _, key, value in knobs)
    lines.append(f"algo=eng{algorithm.get('algo_id', 0)}{{{turned}}}")
    return lines


def _number(given: dict[str, Any], name: str) -> float:
    try:
        return float(given.get(name, 0))
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _object(given: dict[str, Any], name: str) -> dict[str, Any]:
    result = given.get(name)
    return result if isinstance(result, dict) else {}


def _product(made: Instruction) -> list[str]:
    given = _config(made, "gemm_backend_config")
    if given is None:
        return []
    real, beta = _number(given, "alpha_real"), _number(given, "beta")
    lines = []
    if real != 1:
        is_complex = kind_of(made.proto.shape) in ("c64", "c128")
        names = ("alpha_real", "alpha_imag") if is_complex else ("alpha",)
        lines += [f"{name}={real:.6g}" for name in names]
    if beta not in (0, 1):
        lines.append(f"beta={beta:.6g}")
    numbers = given.get("dot_dimension_numbers") or {}
    sides = []
    for side in ("lhs", "rhs"):
        batch = numbers.get(f"{side}_batch_dimensions") or []
        if batch:
            sides.append(f"{side}_batch_dims={{{','.join(map(str, batch))}}}")
        contracted = numbers.get(f"{side}_contracting_dimensions") or []
        sides.append(f"{side}_contracting_dims={{{','.join(map(str, contracted))}}}")
    lines.append("<br/>".join(sides))
    if "selected_algorithm" in given:
        lines.append(f"algorithm={given['selected_algorithm']}")
    if given.get("epilogue", "DEFAULT") != "DEFAULT":
        lines.append(f"epilogue={given['epilogue']}")
    return lines


def tooltip(made: Instruction, module: HloModuleProto) -> str:
    """Where an instruction comes from."""
    meta = made.proto.metadata
    lines = [sane(meta.op_name)] if meta.op_name else []
    if meta.op_type:
        lines.append(f"op_type: {sane(meta.op_type)}")
    if meta.source_file and meta.source_line:
        lines.append(f"source: {meta.source_file}:{meta.source_line}")
    index, number = module.stack_frame_index, meta.stack_frame_id
    for _ in index.stack_frames:
        if not 0 < number <= len(index.stack_frames):
            break
        frame = index.stack_frames[number - 1]
        at = index.file_locations[frame.file_location_id - 1]
        column = f":{at.column}" if at.column else ""
        file, function = (
            index.file_names[at.file_name_id - 1],
            index.function_names[at.function_name_id - 1],
        )
        lines.append(f"{file}:{function}:{at.line}{column}")
        number = frame.parent_frame_id
    return "\n".join(lines)


def is_constant(made: Instruction) -> bool:
    """A constant, or one number of a fusion that is made to an array."""
    if made.opcode == "constant":
        return True
    return (
        made.opcode == "broadcast"
        and (made.parent.fusion is not None or made.parent.proto.is_fusion_computation)
        and made.operands[0].opcode == "constant"
        and is_scalar(made.operands[0].proto.shape)
    )


def fed_constant(made: Instruction) -> Instruction | None:
    """The constant that a parameter of a fusion always is."""
    fusion = made.fused_by
    if made.opcode != "parameter" or fusion is None:
        return None
    operand = fusion.operands[made.proto.parameter_number]
    return operand if operand.opcode == "constant" else None


def element(made: Instruction) -> str:
    """An element of a tuple, within the node that uses it."""
    shape = with_layout(made.proto.shape)
    return f"tuple-element {made.proto.tuple_index} of {made.operands[0].name} {shape}"


def title(made: Instruction) -> str:
    """The first line of a node."""
    if made.opcode == "parameter":
        return f"<b>Parameter {made.proto.parameter_number}</b>"
    if made.name.startswith(made.opcode):
        return f"<b>{sane(made.name)}</b>"
    kind = f":{made.proto.fusion_kind}" if made.opcode == "fusion" else ""
    return f"<b>{sane(made.name)}</b><br/>{sane(made.opcode + kind)}"


def applied(made: Instruction) -> str:
    """What the computations do that an instruction applies, where a word says it."""
    if made.opcode == "fusion":
        return ""
    lines = []
    for place, callee in enumerate(made.calls):
        if (word := trivial(callee)) is not None:
            which = "" if len(made.calls) == 1 else f" {place}"
            lines.append(f"Subcomputation{which}: <b>{sane(word)}</b>")
    return "<br/>".join(lines)


def producer(made: Instruction) -> Instruction:
    """What really gives a value that is copied, called for or put into tuples."""
    places: list[int] = []
    while True:
        if made.opcode in ("bitcast", "copy"):
            made = made.operands[0]
        elif made.opcode == "get-tuple-element":
            places.append(made.proto.tuple_index)
            made = made.operands[0]
        elif made.opcode == "tuple" and places and places[-1] < len(made.operands):
            made = made.operands[places.pop()]
        elif made.opcode == "call":
            made = made.calls[0].root
        else:
            return made
