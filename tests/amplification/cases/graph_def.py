"""A GraphDef that is worse than any program makes it (tensorflow/core/framework/graph.proto)."""

from tests.amplification.wire import many, number, part, repeated

_NODE, _LIBRARY, _DEBUG = 1, 2, 5


def _node(name: str, op: str, inputs: bytes = b"", more: bytes = b"") -> bytes:
    return part(_NODE, part(1, name) + part(2, op) + inputs + more)


def _attr(key: str, value: bytes = b"") -> bytes:
    return part(5, part(1, key) + part(2, value))


def empty_nodes(size: int) -> bytes:
    return _node("a", "NoOp") + many(size, part(_NODE))


def nodes(size: int) -> bytes:
    return repeated(size, lambda n: _node(f"n{n}", "NoOp"))


def one_name(size: int) -> bytes:
    return many(size, _node("a", "NoOp"))


def op_types(size: int) -> bytes:
    return repeated(size, lambda n: _node(f"n{n}", f"Op{n}"))


def deep_scope(size: int) -> bytes:
    """One node in a scope as deep as the file is long."""
    return _node("a/" * (size // 2) + "b", "NoOp")


def deep_scopes(size: int) -> bytes:
    """A hundred nodes in scopes of their own."""
    return repeated(size, lambda n: _node(f"s{n}/" + "a/" * (size // 250) + "b", "MatMul"))


def many_scopes(size: int) -> bytes:
    """Each node in sixty scopes of its own."""
    return repeated(size, lambda n: _node(f"s{n}/" + "a/" * 60 + "b", "MatMul"))


def growing_scopes(size: int) -> bytes:
    return repeated(size, lambda n: _node("a/" * n + "b", "NoOp"))


def long_name(size: int) -> bytes:
    return _node("x" * size, "NoOp")


def wide_name(size: int) -> bytes:
    return _node("\U0001f600\x1b\n" * (size // 6), "NoOp")


def chain(size: int) -> bytes:
    return repeated(size, lambda n: _node(f"n{n}", "MatMul", part(3, f"n{n - 1}") if n else b""))


def named_chain(size: int) -> bytes:
    """A chain whose first node the questions name."""
    return _node("a", "NoOp") + repeated(
        size, lambda n: _node(f"n{n}", "X", part(3, f"n{n - 1}" if n else "a"))
    )


def long_op_type(size: int) -> bytes:
    """A node with a long op type among very many."""
    return _node("a", "X" * (size // 2)) + repeated(size // 2, lambda n: _node(f"n{n}", "Y"))


def circle(size: int) -> bytes:
    return _node("n0", "Add", part(3, "n1")) + repeated(
        size, lambda n: _node(f"n{n + 1}", "Add", part(3, f"n{n}"))
    )


def star(size: int) -> bytes:
    """One node with everything as its input, and which is everybody's."""
    inputs = repeated(size // 3, lambda n: part(3, f"n{n}"))
    return _node("a", "AddN", inputs) + repeated(
        size // 2, lambda n: _node(f"n{n}", "Neg", part(3, "a"))
    )


def dense(size: int) -> bytes:
    """Every node takes from all before it."""
    count = int((size / 2.3) ** 0.5)
    return b"".join(
        _node(chr(97 + n % 26) + str(n // 26), "AddN",
              b"".join(part(3, chr(97 + k % 26) + str(k // 26)) for k in range(n)))
        for n in range(count)
    )  # fmt: skip


def one_input(size: int) -> bytes:
    return _node("a", "Const") + _node("b", "AddN", many(size, part(3, "a")))


def empty_inputs(size: int) -> bytes:
    return _node("a", "Const") + _node("b", "AddN", many(size, part(3)))


def control_edges(size: int) -> bytes:
    return repeated(size, lambda n: _node(f"n{n}", "NoOp", many(60, part(3, f"^n{n // 2}"))))


def unknown_inputs(size: int) -> bytes:
    return _node("b", "AddN", repeated(size, lambda n: part(3, f"{n}:{n}")))


def huge_ports(size: int) -> bytes:
    return _node("a", "Const") + _node("b", "AddN", many(size, part(3, "a:4611686018427387904")))


def devices(size: int) -> bytes:
    return repeated(size, lambda n: _node(f"n{n}", "NoOp", more=part(4, f"/device:GPU:{n}")))


def empty_attrs(size: int) -> bytes:
    return _node("a", "Const", more=many(size, part(5)))


def attrs(size: int) -> bytes:
    return _node("a", "Const", more=repeated(size, lambda n: _attr(f"k{n}", number(3, n))))


def shape(size: int) -> bytes:
    """A shape of very many dimensions, with a product beyond all numbers."""
    dims = many(size, part(2, number(1, 1 << 62)))
    return _node("a", "Variable", more=_attr("shape", part(7, dims)))


def shape_of_every_input(size: int) -> bytes:
    """One tensor of as many long dimensions as there may be, which a node takes again and again."""
    dims = part(2, number(1, (1 << 63) - 1)) * 254
    made = _node("a", "Placeholder", more=_attr("shape", part(7, dims)))
    return made + _node("b", "AddN", many(size, part(3, "a")))


def empty_dims(size: int) -> bytes:
    return _node("a", "Variable", more=_attr("shape", part(7, many(size, part(2)))))


def shapes(size: int) -> bytes:
    one = part(7, part(7, many(size, part(2, number(1, 3)))))
    return _node("a", "MatMul", more=_attr("_output_shapes", part(1, one)))


def empty_shapes(size: int) -> bytes:
    return _node("a", "MatMul", more=_attr("_output_shapes", part(1, many(size, part(7)))))


def list_of_numbers(size: int) -> bytes:
    return _node("a", "Const", more=_attr("k", part(1, part(3, b"\x01" * size))))


def list_of_texts(size: int) -> bytes:
    return _node("a", "Const", more=_attr("k", part(1, many(size, part(2)))))


def tensor(size: int) -> bytes:
    return _node("a", "Const", more=_attr("value", part(8, number(1, 1) + part(4, b"\0" * size))))


def tensor_numbers(size: int) -> bytes:
    return _node(
        "a", "Const", more=_attr("value", part(8, number(1, 9) + part(10, b"\x01" * size)))
    )


def nested_functions(size: int) -> bytes:
    """Attributes in functions in attributes."""
    value = b""
    while len(value) < min(size, 1600):
        value = part(10, part(1, "f") + part(2, part(1, "k") + part(2, value)))
    return many(size, _node("a", "Const", more=_attr("k", value)))


def functions(size: int) -> bytes:
    """Each calls the next."""

    def function(n: int) -> bytes:
        body = part(3, part(1, "c") + part(2, f"f{n + 1}"))
        return part(1, part(1, part(1, f"f{n}")) + body)

    return _node("a", "f0") + part(_LIBRARY, repeated(size, function))


def doubling_functions(size: int) -> bytes:
    """Each calls the next twice: as calls it would be a tree of 2^n."""

    def function(n: int) -> bytes:
        body = b"".join(
            part(3, part(1, f"c{k}") + part(2, "PartitionedCall")
                 + _attr("f", part(10, part(1, f"f{n + 1}")))) for k in range(2)
        )  # fmt: skip
        return part(1, part(1, part(1, f"f{n}")) + body)

    calls = _node("a", "PartitionedCall", more=_attr("f", part(10, part(1, "f0"))))
    return calls + part(_LIBRARY, repeated(size, function))


def one_function(size: int) -> bytes:
    """Which everybody calls, and which calls itself."""
    body = part(3, part(1, "c") + part(2, "f"))
    library = part(_LIBRARY, part(1, part(1, part(1, "f")) + body))
    return repeated(size, lambda n: _node(f"n{n}", "f")) + library


def empty_functions(size: int) -> bytes:
    return _node("a", "NoOp") + part(_LIBRARY, many(size, part(1)))


def function_arguments(size: int) -> bytes:
    signature = part(1, "f") + many(size // 2, part(2)) + many(size // 2, part(3))
    return _node("a", "f") + part(_LIBRARY, part(1, part(1, signature)))


def function_returns(size: int) -> bytes:
    returns = repeated(size, lambda n: part(4, part(1, f"r{n}") + part(2, "a")))
    return _node("a", "f") + part(_LIBRARY, part(1, part(1, part(1, "f")) + returns))


def gradients(size: int) -> bytes:
    return _node("a", "NoOp") + part(_LIBRARY, many(size, part(2)))


def whiles(size: int) -> bytes:
    """Loops of version 1, each inside the one before."""

    def level(n: int) -> bytes:
        frame = _attr("frame_name", part(2, f"l{n}"))
        source = f"e{n - 1}" if n else "c"
        return _node(f"e{n}", "Enter", part(3, source), frame) + _node(
            f"m{n}", "Merge", part(3, f"e{n}") + part(3, f"i{n}")
        ) + _node(f"i{n}", "NextIteration", part(3, f"m{n}"))  # fmt: skip

    return _node("c", "Const") + repeated(size, level)


def frames(size: int) -> bytes:
    """Every node has the whole stack of all frames."""
    files = part(1, "a.py")
    count = size // 60
    by_id = b"".join(
        part(4, b"\x09" + n.to_bytes(8, "little") + part(2, number(1, 0) + number(2, n)))
        for n in range(count)
    )
    stack = part(2, b"".join(n.to_bytes(8, "little") for n in range(count)))
    traces = part(6, b"\x09" + (1).to_bytes(8, "little") + part(2, stack))
    named = repeated(
        size // 4, lambda n: part(5, part(1, f"n{n}") + b"\x11" + (1).to_bytes(8, "little"))
    )
    nodes = repeated(size // 4, lambda n: _node(f"n{n}", "NoOp"))
    return nodes + part(_DEBUG, files + by_id + traces + named)


def traces(size: int) -> bytes:
    frame = part(1, number(1, 0) + number(2, 7))
    nodes = repeated(size // 4, lambda n: _node(f"n{n}", "NoOp"))
    traces = repeated(size // 2, lambda n: part(2, part(1, f"n{n}") + part(2, many(60, frame))))
    return nodes + part(_DEBUG, part(1, "a.py") + traces)


def empty_frames(size: int) -> bytes:
    trace = part(2, part(1, "a") + part(2, many(size, part(1))))
    return _node("a", "NoOp") + part(_DEBUG, part(1, "a.py") + trace)


def original_names(size: int) -> bytes:
    return _node("a", "NoOp", more=part(6, many(size, part(1))))


def text(size: int) -> bytes:
    """The text format: fields with nothing in them."""
    return b'node { name: "a" op: "NoOp" }\n' + many(size, b"node{}\n")


def nested_text(size: int) -> bytes:
    deep = b"attr{value{list{func{" * 25 + b"}}}}" * 25
    return b'node { name: "a" op: "NoOp" }\n' + many(size, b"node{" + deep + b"}\n")


def json(size: int) -> bytes:
    return b'{"node":[{"name":"a","op":"NoOp"}' + many(size, b",{}") + b"]}"


def nested_json(size: int) -> bytes:
    return b'{"node":[{"name":"a","op":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}]}"
