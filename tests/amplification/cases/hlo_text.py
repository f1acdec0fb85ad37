"""HLO texts, buffer assignments and reports that XLA never wrote."""

# A line of a log is a line here.
# ruff: noqa: E501

from tests.amplification.wire import many, repeated

_HEAD = "HloModule jit_f, is_scheduled=true\n\n"


def _main(body: bytes, before: str = "") -> bytes:
    return f"{_HEAD}{before}ENTRY main {{\n  a = f32[] parameter(0)\n".encode() + body + b"}\n"


def instructions(size: int) -> bytes:
    return _main(repeated(size, lambda n: f"  i{n} = f32[] add(a, a)\n".encode()))


def chain(size: int) -> bytes:
    return _main(
        b"  i0 = f32[] negate(a)\n"
        + repeated(size, lambda n: f"  i{n + 1} = f32[] add(i{n}, i{n})\n".encode())
    )


def operands(size: int) -> bytes:
    return _main(b"  b = (f32[]) tuple(a" + many(size, b", a") + b")\n")


def nested_operands(size: int) -> bytes:
    return _main(b"  b = f32[] add(" + b"(" * (size // 2) + b")" * (size // 2) + b")\n")


def nested_shape(size: int) -> bytes:
    return _main(b"  b = " + b"(" * (size // 2) + b"f32[]" + b")" * (size // 2) + b" tuple(a)\n")


def shape_of_wrapped(size: int) -> bytes:
    """A long shape of which an asynchronous call has very many, by a name of one letter."""
    shape = b"(f32[]" + many(size // 2, b", f32[]") + b")"
    return _main(
        b"  b = %b foo(a)\n  c = ((f32[]), f32[]) foo-start(b%b)\n"
        % (shape, many(size // 2, b", b"))
    )


def wide_shape(size: int) -> bytes:
    return _main(b"  b = (f32[]" + many(size, b", f32[]") + b") tuple(a)\n")


def dimensions(size: int) -> bytes:
    return _main(b"  b = f32[9" + many(size, b",9") + b"] broadcast(a), dimensions={}\n")


def huge_dimension(size: int) -> bytes:
    return _main(b"  b = f32[" + b"9" * size + b"] broadcast(a), dimensions={}\n")


def literal(size: int) -> bytes:
    return _main(b"  b = f32[9999999999] constant({0" + many(size, b",0") + b"})\n")


def nested_literal(size: int) -> bytes:
    return _main(b"  b = f32[1] constant(" + b"{" * (size // 2) + b"}" * (size // 2) + b")\n")


def huge_literals(size: int) -> bytes:
    return _main(
        repeated(size, lambda n: f"  i{n} = f32[1099511627776] constant({{...}})\n".encode())
    )


def nested_attribute(size: int) -> bytes:
    half = size // 2
    return _main(b"  b = f32[] copy(a), sharding=" + b"{" * half + b"}" * half + b"\n")


def attributes(size: int) -> bytes:
    return _main(b"  b = f32[] copy(a)" + repeated(size, lambda n: f", k{n}={n}".encode()) + b"\n")


def replica_groups(size: int) -> bytes:
    return _main(b"  b = f32[] all-reduce(a), replica_groups={{0" + many(size, b"},{0") + b"}}\n")


def iota_groups(size: int) -> bytes:
    return _main(
        repeated(
            size,
            lambda n: (
                f"  i{n} = f32[] all-reduce(a), replica_groups=[1048576,1048576]<=[1099511627776]\n".encode()
            ),
        )
    )


def deep_scope(size: int) -> bytes:
    return _main(b'  b = f32[] copy(a), metadata={op_name="' + b"a/" * (size // 2) + b'b"}\n')


def scopes(size: int) -> bytes:
    return _main(
        repeated(
            size, lambda n: f'  i{n} = f32[] copy(a), metadata={{op_name="a/{n}/b"}}\n'.encode()
        )
    )


def config(size: int) -> bytes:
    return _main(
        b"  b = f32[] copy(a), backend_config="
        + b'{"a":' * (size // 6)
        + b"}" * (size // 6)
        + b"\n"
    )


def open_text(size: int) -> bytes:
    return _main(b'  b = f32[] copy(a), metadata={op_name="' + b"x" * size)


def quotes(size: int) -> bytes:
    return _main(b"  b = f32[] copy(a), metadata={" + b'"' * size + b"}\n")


def comments(size: int) -> bytes:
    return _main(b"  b = f32[] copy(a" + many(size, b"/*") + b")\n")


def computations(size: int) -> bytes:
    one = repeated(size, lambda n: f"c{n} {{\n  p{n} = f32[] parameter(0)\n}}\n\n".encode())
    return _main(b"", before=one.decode())


def nested_calls(size: int) -> bytes:
    levels = repeated(
        size, lambda n: f"c{n} {{\n  p{n} = f32[] call(), to_apply=c{n + 1}\n}}\n\n".encode()
    )
    return _main(b"  b = f32[] call(a), to_apply=c0\n", before=levels.decode())


def doubling_calls(size: int) -> bytes:
    def level(n: int) -> bytes:
        call = f"call(), to_apply=c{n + 1}"
        return f"c{n} {{\n  p{n} = f32[] {call}\n  q{n} = f32[] {call}\n}}\n\n".encode()

    return _main(b"  b = f32[] call(a), to_apply=c0\n", before=repeated(size, level).decode())


def empty_lines(size: int) -> bytes:
    return _main(b"\n" * size)


def header(size: int) -> bytes:
    aliases = ", ".join(f"{{{n}}}: ({n}, {{}}, may-alias)" for n in range(size // 30))
    return f"HloModule f, input_output_alias={{ {aliases} }}\n\nENTRY main {{\n a = f32[] parameter(0)\n}}\n".encode()


def nested_header(size: int) -> bytes:
    half = size // 2
    return (
        b"HloModule f, entry_computation_layout=" + b"{" * half + b"}" * half
        + b"\n\nENTRY main {\n a = f32[] parameter(0)\n}\n"
    )  # fmt: skip


def frames(size: int) -> bytes:
    """The index of frames behind the header, as deep as the text."""
    places = "".join(
        f"{n + 1} {{file_location_id=1 parent_frame_id={n + 1}}}\n" for n in range(size // 80)
    )
    index = (
        'FileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
        f"1 {{file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}}\n\nStackFrames\n{places}\n\n"
    )
    body = repeated(
        size // 2,
        lambda n: f"  i{n} = f32[] copy(a), metadata={{stack_frame_id={n + 1}}}\n".encode(),
    )
    return _main(body, before=index)
