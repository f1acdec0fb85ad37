"""GraphDefs that break very many rules, most of them in one place with a long name."""

from tests.amplification.wire import many, part, repeated

_NODE, _LIBRARY = 1, 2


def _node(name: str, content: bytes = b"") -> bytes:
    return part(_NODE, part(1, name) + part(2, "X") + content)


def _function(name: str, content: bytes) -> bytes:
    return _node("a") + part(_LIBRARY, part(1, part(1, part(1, name)) + content))


def _attr(key: str, value: bytes = b"") -> bytes:
    return part(5, part(1, key) + part(2, value))


def unknown_inputs_of_long_function(size: int) -> bytes:
    body = part(3, part(1, "a") + part(2, "X") + many(size // 2, part(3, "b")))
    return _function("f" * (size // 2), body)


def unknown_inputs_of_long_node(size: int) -> bytes:
    return _node("a" * (size // 2), many(size // 2, part(3, "b")))


def no_op_of_long_function(size: int) -> bytes:
    return _function("f" * (size // 2), many(size // 2, part(3, part(1, "a"))))


def bad_names_of_long_function(size: int) -> bytes:
    body = many(size // 2, part(3, part(1, "!") + part(2, "X")))
    return _function("f" * (size // 2), body)


def long_bad_names_of_functions(size: int) -> bytes:
    """One name of a function and of its node."""
    name = "!" * (size // 2)
    body = part(3, part(1, name) + part(2, "X"))
    return _function(name, body + many(size // 2 - 9, part(4, part(1, "r"))))


def returns_of_long_function(size: int) -> bytes:
    returns = repeated(size // 2, lambda n: part(4, part(1, f"r{n}") + part(2, "n")))
    return _function("f" * (size // 2), returns)


def attribute_names_of_long_node(size: int) -> bytes:
    return _node("a" * (size // 2), repeated(size // 2, lambda n: _attr(f"!{n}")))


def placed_with_absent(size: int) -> bytes:
    """A node with a long name, to be placed with very many that are not there."""
    names = part(1, repeated(size // 2, lambda n: part(2, f"loc:@x{n}")))
    return _node("a" * (size // 2), _attr("_class", names))


def absent_branches(size: int) -> bytes:
    """A node with a long name that calls very many functions that are not there."""
    names = part(1, repeated(size // 2, lambda n: part(9, part(1, f"f{n}"))))
    return _node("a" * (size // 2), _attr("branches", names))


def long_absent_function(size: int) -> bytes:
    """An op type that is a function's name, of very many nodes of one long function."""
    body = repeated(size // 2, lambda n: part(3, part(1, f"n{n}") + part(2, "x")))
    return _function("f" * (size // 2), body)


def gradient_circles(size: int) -> bytes:
    """Each function is its own gradient."""

    def one(n: int) -> bytes:
        name = f"f{n}"
        return part(1, part(1, part(1, name))) + part(2, part(1, name) + part(2, name))

    return _node("a") + part(_LIBRARY, repeated(size, one))


def circles(size: int) -> bytes:
    """Each node waits for itself."""
    return repeated(size, lambda n: _node(f"n{n}", part(3, f"n{n}")))


def circles_in_long_function(size: int) -> bytes:
    def one(n: int) -> bytes:
        return part(3, part(1, f"n{n}") + part(2, "X") + part(3, f"n{n}:o:0"))

    return _function("f" * (size // 2), repeated(size // 2, one))
