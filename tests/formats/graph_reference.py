"""What the tables of graphs hold, worked out one message object at a time."""

import math
import re
import struct

from google.protobuf import text_format

from peakline import schema
from peakline.schema import GraphDef

_BYTES = {
    1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 11: 1, 12: 1, 13: 4, 14: 2, 15: 2,
    16: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8, **dict.fromkeys(range(24, 34), 1),
}  # fmt: skip
_SIGNATURE_COLUMNS = (
    "name", "input_arg", "output_arg", "control_output", "description", "is_stateful",
)  # fmt: skip


def _one_line(message, *without):
    copy = type(message).FromString(message.SerializeToString())
    for field in without:
        copy.ClearField(field)
    return text_format.MessageToString(copy, as_one_line=True) or None


def _type(number):
    return schema.enum_name("tensorflow.DataType", number) or str(number)


def _text(raw):
    named = {0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    out, at = "", 0
    while at < len(raw):
        for width in (1, 2, 3, 4):
            try:
                character = raw[at : at + width].decode()
            except UnicodeDecodeError:
                continue
            break
        else:
            character, width = "", 1
        code = raw[at]
        if not character or code < 0x20 or code in {0x5C, 0x7F}:
            character = named.get(code, f"\\x{code:02x}")
        out += character
        at += width
    return out


def _quoted(raw):
    return '"' + _text(raw).replace('"', '\\"') + '"'


def _float(number):
    exact = struct.pack("<f", number)
    if not math.isfinite(number):
        return str(number)
    short = next(f for f in (f"{number:.{p}g}" for p in range(1, 10))
                 if struct.pack("<f", float(f)) == exact)  # fmt: skip
    return repr(float(short))


def _shape(shape):
    if shape.unknown_rank:
        return "<unknown>"
    sizes = []
    for dim in shape.dim:
        size = "?" if dim.size < 0 else str(dim.size)
        sizes.append(f"{_text(dim.name.encode())}={size}" if dim.name else size)
    return "[" + ",".join(sizes) + "]"


def _tensor(tensor):
    shape = tensor.tensor_shape
    sizes = [dim.size for dim in shape.dim]
    spelled = ", ".join("?" if size < 0 else str(size) for size in sizes)
    text = f"{_type(tensor.dtype)} " + ("<unknown>" if shape.unknown_rank else f"[{spelled}]")
    if tensor.dtype == 7:
        return f"{text}, {sum(map(len, tensor.string_val))} bytes"
    known = not shape.unknown_rank and all(size >= 0 for size in sizes)
    if known and tensor.dtype in _BYTES:
        elements = 1
        for size in sizes:
            elements *= size
        if elements * _BYTES[tensor.dtype] < 2**63:
            return f"{text}, {elements * _BYTES[tensor.dtype]} bytes"
    return text


def _func(func, depth):
    parts = []
    for key in sorted(func.attr):
        text = "..." if depth >= 32 else value_of(func.attr[key], depth + 1)[0]
        parts.append(f"{_text(key.encode())}={text}")
    name = _text(func.name.encode())
    return f"{name}{{{', '.join(parts)}}}" if parts else name


def _bool(flag):
    return "true" if flag else "false"


def value_of(value, depth=0):
    """Text and kind of an AttrValue."""
    kind = value.WhichOneof("value") or ""
    held = getattr(value, kind) if kind else None
    texts = {
        "": lambda: "",
        "s": lambda: _quoted(held) if depth else _text(held),
        "i": lambda: str(held),
        "f": lambda: _float(held),
        "b": lambda: _bool(held),
        "type": lambda: _type(held),
        "shape": lambda: _shape(held),
        "tensor": lambda: _tensor(held),
        "placeholder": lambda: _text(held.encode()),
        "func": lambda: _func(held, depth),
        "list": lambda: _list(held, depth),
    }
    return texts[kind](), kind


def _list(held, depth):
    items = [_quoted(s) for s in held.s]
    items += [str(i) for i in held.i]
    items += [_float(f) for f in held.f]
    items += [_bool(b) for b in held.b]
    items += [_type(t) for t in held.type]
    items += [_shape(s) for s in held.shape]
    items += [_tensor(t) for t in held.tensor]
    items += [_func(f, depth) for f in held.func]
    return "[" + ", ".join(items) + "]"


def _edge(text, *, in_function):
    """source, source_output, is_control, source_argument, input."""
    if re.fullmatch(r"\^[^:]+", text, re.DOTALL):
        return text[1:], -1, True, None, None
    if re.fullmatch(r"[^:^][^:]*", text, re.DOTALL):
        return text, 0, False, None, None
    parts = text.split(":")
    whole = (text, 0, False, None, text)
    if text.startswith("^") or not parts[0] or len(parts) > (3 if in_function else 2):
        return whole
    *front, last = parts
    is_number = re.fullmatch(r"[0-9]+", last) and int(last) < 2**31
    if len(parts) == 2:
        if is_number:
            spelled = None if last[0] != "0" else text
            return front[0], int(last), False, None, spelled
        return (front[0], 0, False, last, text) if in_function and last else whole
    if len(parts) == 3 and is_number and front[1]:
        return front[0], int(last), False, front[1], None if str(int(last)) == last else text
    return whole


def _frames(info):
    """Per key its frames, innermost first: by name before by id, inline before by id."""

    def frame(result):
        known = result is not None and 0 <= result.file_index < len(info.files)
        file = info.files[result.file_index] if known else ""
        if result is None:
            return file, 0, 0, "", ""
        return file, result.line, result.col, result.func, result.code

    def frames(trace):
        if trace.file_line_cols:
            return [frame(one) for one in trace.file_line_cols]
        return [frame(one) for one in reversed([info.frames_by_id.get(i) for i in trace.frame_id])]

    result = {name: frames(info.traces_by_id[i]) for name, i in info.name_to_trace_id.items()
             if i in info.traces_by_id}  # fmt: skip
    return result | {name: frames(trace) for name, trace in info.traces.items()}


def tables_of(graphs):
    """The rows (dicts) of every table of ``(name, kind, tags, GraphDef)`` graphs."""
    out = {
        name: []
        for name in (
            "graphs", "nodes", "edges", "node_attrs", "functions", "function_arguments",
            "function_attrs", "node_frames",
        )
    }  # fmt: skip
    for name, kind, tags, graph in graphs:
        library = graph.library
        out["graphs"].append({
            "graph": name, "kind": kind, "tags": tags, "producer": graph.versions.producer,
            "min_consumer": graph.versions.min_consumer,
            "bad_consumers": ",".join(map(str, graph.versions.bad_consumers)),
            "version": graph.version, "nodes": len(graph.node), "functions": len(library.function),
        })  # fmt: skip
        bodies = [(None, graph.node), *((f.signature.name, f.node_def) for f in library.function)]
        for function, nodes in bodies:
            for node in nodes:
                _node(out, name, function, node)
        for function in library.function:
            _function(out, name, library, function)
        for key, frames in _frames(graph.debug_info).items():
            out["node_frames"] += [
                {"graph": name, "node": key, "depth": depth, "file": frame[0], "line": frame[1],
                 "column": frame[2], "function": frame[3], "code": frame[4]}
                for depth, frame in enumerate(frames)
            ]  # fmt: skip
    return out


def _node(out, graph, function, node):
    debug = node.experimental_debug_info
    out["nodes"].append({
        "graph": graph, "name": node.name, "op": node.op, "device": node.device,
        "function": function,
        "original_nodes": ",".join(debug.original_node_names)
        if debug.original_node_names else None,
        "original_functions": ",".join(debug.original_func_names)
        if debug.original_func_names else None,
        "full_type": _one_line(node.experimental_type),
    })  # fmt: skip
    for place, text in enumerate(node.input):
        source, output, control, argument, given = _edge(text, in_function=function is not None)
        out["edges"].append({
            "graph": graph, "source": source, "source_output": output, "target": node.name,
            "target_input": place, "is_control": control, "function": function,
            "source_argument": argument, "input": given,
        })  # fmt: skip
    for attr, value in node.attr.items():
        text, kind = value_of(value)
        out["node_attrs"].append({
            "graph": graph, "name": node.name, "attr": attr, "value": text, "kind": kind,
            "function": function,
        })  # fmt: skip


def _function(out, graph, library, function):
    signature = function.signature
    gradients = {g.function_name: g.gradient_func for g in library.gradient}
    registered = [
        g.registered_op_type
        for g in library.registered_gradients
        if g.gradient_func == signature.name
    ]
    more = _one_line(signature, *_SIGNATURE_COLUMNS)
    out["functions"].append({
        "graph": graph, "name": signature.name, "gradient": gradients.get(signature.name),
        "nodes": len(function.node_def), "description": signature.description,
        "is_stateful": signature.is_stateful, "signature": more,
        "gradient_of": ",".join(registered) if registered else None,
    })  # fmt: skip

    def argument(role, place, name, arg, source):
        has = arg is not None
        out["function_arguments"].append({
            "graph": graph, "function": signature.name, "role": role, "position": place,
            "name": name, "data_type": _type(arg.type) if has and arg.type else None,
            "type_attr": arg.type_attr or None if has else None,
            "number_attr": arg.number_attr or None if has else None,
            "type_list_attr": arg.type_list_attr or None if has else None,
            "is_ref": has and arg.is_ref, "source": source,
            "handle": _one_line(arg, *(f.name for f in arg.DESCRIPTOR.fields
                                       if f.name != "handle_data"))
            if has and arg.handle_data else None,
            "description": arg.description or None if has else None,
            "full_type": _one_line(arg.experimental_full_type) if has else None,
        })  # fmt: skip

    for place, arg in enumerate(signature.input_arg):
        argument("input", place, arg.name, arg, None)
    for place, arg in enumerate(signature.output_arg):
        argument("output", place, arg.name, arg, function.ret.get(arg.name))
    for place, name in enumerate(signature.control_output):
        argument("control_output", place, name, None, function.control_ret.get(name))

    def attr(position, name, value, unique):
        out["function_attrs"].append({
            "graph": graph, "function": signature.name, "argument": position, "attr": name,
            "value": value, "unique_id": unique,
        })  # fmt: skip

    for name, value in function.attr.items():
        attr(None, name, value_of(value)[0], None)
    unique = dict(function.resource_arg_unique_id)
    for position in sorted({*function.arg_attr, *unique}):
        attrs = function.arg_attr[position].attr if position in function.arg_attr else {}
        for name, value in attrs.items():
            attr(position, name, value_of(value)[0], unique.get(position))
        if not attrs and position in unique:
            attr(position, "", "", unique[position])


_NAMES = ("", "a", "b", "c/d", "f", "a:0", "b:1", "b:007", "^a", "^", "^a:1", ":", "a:", "a:b",
          "a:b:0", "a:b:1", "a:b:x", "a:b:00", "a:1:2:3", ":b:0", "a:99999999999", "a:-1", "é",
          'say "no"\\\n', "\x00\x7f")  # fmt: skip
_BYTES_OF_GRAPH_RANDOM = (b"", b"loc:@a", b"\xff\xfe", b"a\\b\t", "\u2028é".encode(), b'"')
_NUMBERS = (0, 0, 1, 1, 2, 3, 7, 100, 2**31 - 1)
_SIGNED = (*_NUMBERS, -1, -(2**31))
_FLOATS = (0.0, -0.0, 1.0, 0.1, 1e-5, 1e16, 3.4e38, 1e-45, float("inf"), float("nan"), 123456.789)
_MOST_DEPTH = 9


def _value(rng, field):
    if field.enum_type is not None:
        return rng.choice([*field.enum_type.values_by_number, 9999])
    if field.type == field.TYPE_STRING:
        return rng.choice(_NAMES)
    if field.type == field.TYPE_BYTES:
        return rng.choice(_BYTES_OF_GRAPH_RANDOM)
    if field.type == field.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type in {field.TYPE_FLOAT, field.TYPE_DOUBLE}:
        return rng.choice(_FLOATS)
    if field.type == field.TYPE_INT64:
        return rng.choice((*_SIGNED, 2**63 - 1, -(2**63)))
    signed = field.type == field.TYPE_INT32
    return rng.choice(_SIGNED if signed else _NUMBERS)


def _fill(rng, message, depth, dense):
    fields = list(message.DESCRIPTOR.fields)
    chance = 0.75 if depth < 3 else dense
    for field in rng.sample(fields, len(fields)):
        if depth >= _MOST_DEPTH or rng.random() > chance:
            continue
        many = rng.choice((1, 1, 2, 4))
        held = field.message_type
        if held is not None and held.GetOptions().map_entry:
            entries = getattr(message, field.name)
            for _ in range(many):
                key = _value(rng, held.fields_by_name["key"])
                if held.fields_by_name["value"].message_type is None:
                    entries[key] = _value(rng, held.fields_by_name["value"])
                else:
                    _fill(rng, entries[key], depth + 1, dense)
        elif held is not None and field.is_repeated:
            for _ in range(many):
                _fill(rng, getattr(message, field.name).add(), depth + 1, dense)
        elif held is not None:
            getattr(message, field.name).SetInParent()
            _fill(rng, getattr(message, field.name), depth + 1, dense)
        elif field.is_repeated:
            getattr(message, field.name).extend(_value(rng, field) for _ in range(many))
        else:
            setattr(message, field.name, _value(rng, field))


def random_graph(rng):
    """A GraphDef with any of its fields set, at any depth."""
    graph = GraphDef()
    _fill(rng, graph, 0, rng.choice((0.2, 0.4, 0.6)))
    return graph
