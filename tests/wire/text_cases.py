"""Texts that are accepted and refused, and how the reference reads them.

`GOOD` and `BAD` are judged by the scanner and by google.protobuf.text_format alike. `BETTER` are
those that the reference refuses and the specification, or debug strings, have; each with the same
message in plain text. `STRICTER` are those that only the reference takes.
"""

import warnings

from google.protobuf import text_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.wire.zoo import ZOO

from peakline.wire.text import TextResult, text_to_wire

Zoo = GetMessageClass(ZOO)

GOOD = [
    "",
    "  # nothing but a comment",
    "int32: 1",
    "int32:1 int64:2",
    "int32 : 1",
    "int32:\n# why not\n1",
    "\tint32:\v1\f\r\n",
    "int32: 1, int64: 2; uint32: 3",
    "int32: 0",
    "int32: -0",
    "int32: -2147483648 int64: -9223372036854775808",
    "int32: 2147483647 int64: 9223372036854775807",
    "uint32: 4294967295 uint64: 18446744073709551615",
    "uint32: 0x1F uint64: 0XfFfFfFfFfFfFfFfF",
    "uint32: 010 uint64: 01777777777777777777777 int32: -017 int64: -0x10 sint32: 00",
    "sint32: -2147483648 sint64: -9223372036854775808",
    "sint32: 2147483647 sint64: 9223372036854775807",
    "fixed32: 4294967295 fixed64: 18446744073709551615",
    "sfixed32: -1 sfixed64: -1",
    "sfixed32: 2147483647 sfixed64: -9223372036854775808",
    "bool: true",
    "bool: True",
    "bool: t",
    "bool: 1",
    "bool: false",
    "bool: False",
    "bool: f",
    "bool: 0",
    "bool_list: [true, f, 1, False]",
    *(
        f"float: {x} double: {x}"
        for x in "1 1.5 .5 5. 1e3 1E+3 1e-3 .5e1 5.e1 1f 1.5F 1e3f 0 0.0 -0 -0.0 0f inf Inf INF "
        "-inf infinity -Infinity nan NaN inff nanf 1e400 -1e400 1e-400 4.9e-324 2.5e-324 1e39 "
        "1.401298464324817e-45 7e-46 3.4028235677973366e38 3.4028235e38 9007199254740993 "
        "0.1234567890123456789012345 123456789012345678901234567890 1e22 1e23 8.5e-23 "
        "9007199254740992e22 9007199254740991e-22 1.7976931348623157e308 0.000000000000000000001 "
        "1e99999999999999999999 0e99999999999999999999 1e-99999999999999999999".split()
    ),
    "color: GREEN",
    "color: 1",
    "color: 7",
    "color: -7",
    "color: 0x1",
    "color_list: [GREEN, 0, RED] color_list: GREEN",
    'string: "" bytes: ""',
    "string: 'a' bytes: 'b'",
    'string: "a" \'b\'"c"\n # comment\n "d"',
    'string:"a"int32:1',
    "string: \"it's\" bytes: '\"'",
    r'string: "\a\b\f\n\r\t\v\\\'\""',
    r'bytes: "\0\1\12\123\377\0018\x1\x1f\xfff\xFF"',
    r'string: "\303\251 \xc3\xa9 \u00e9 \U000000e9 \u9762 \U0001f600 \U0010ffff \u0000"',
    'string: "é面😀"',
    'string: "\t\r\x01"',
    "string: '# no comment { [ <'",
    "leaf { id: 1 }",
    "leaf: { id: 1 }",
    "leaf < id: 1 >",
    "leaf: < id: 1 >",
    "leaf{id:1}leaves{id:2}leaves{}",
    "leaf {} ; leaves {} , leaves <>",
    "leaf { # comment }\n }",
    "tree { left { left < left { id: 1 } > } }",
    "leaves: [{ id: 1 }, < id: 2 >, {}]",
    "leaves [{ id: 1 }]",
    "leaves: []",
    "leaves []",
    "trees: [{ kids: [{ id: 1 kids: [{}, { id: 2 }] }] }, { id: 3 }]",
    "int32_list: [1, 2 , -3]",
    "int32_list: []",
    "int32_list: [ # comment\n 1 # another\n ]",
    "int32_list: 1 int32_list: 2 int32_list: [3]",
    "double_list: [1, 2.5, inf, 1e300, 0.1234567890123456789]",
    "string_list: ['a', \"b\" 'c', '']",
    "numbers { key: -1 value: 2.5 } numbers { key: -1 value: 3.5 } numbers {}",
    "zoos { key: 1 value { int32: 1 zoos { value { string: 'x' } } } }",
    "zoos: [{ key: 1 }, { value {} key: 2 }]",
    "pick_sint64: 0",
    "pick_sint64: -0",
    "pick_string: ''",
    "pick_leaf { }",
    "maybe: 0",
    "int32: 0 int32: 0 int32: 5",
    "string: '' string: 'a'",
    "double: 0 double: 1",
    # Unknown fields.
    "none: 1 int32: 2",
    "none: 'a' 'b' int32: 2",
    "none: -inf no: 1.5e3 nil: 0x1f nought: NAME zero: true",
    "none { int32: 1 other { x: [1, 'b', {y: 1}] } } int32: 2",
    "none: { a: 1 } int32: 2",
    "none < a: 1, b: <>; > int32: 2",
    "none: [] no: [1, 2] nil: [{}, {a: 1}] int32: 2",
    r"none: 'a\'}' int32: 2",
    "leaf { none: 1 id: 2 }",
    "15: 1 16: 'a' 17 { 1: 2 } int32: 2",
    "int: 1 int322: 2 int32: 3 Int32: 4 int3: 5",
    "leaf { string: 'not of a leaf' }",
    "none { } , nil: 5 ; int32: 2",
]

BAD = [
    "int32", "int32 1", "int32:", "int32: }", "int32: 'a'", "int32: GREEN", "int32: true",
    "int32: 1.0", "int32: 1.", "int32: 1e3", "int32: 1f", "int32: 0x", "int32: 0xg", "int32: 08",
    "int32: --1", "int32: -", "int32: 1int64: 2", "int32: 2147483648", "int32: -2147483649",
    "int32: { }", "int32: [1]", "int64: 9223372036854775808", "int64: -9223372036854775809",
    "uint32: -1", "uint32: 4294967296", "uint64: -1", "uint64: 18446744073709551616",
    "uint64: 28446744073709551616", "uint64: 99999999999999999999999999",
    "uint64: 0x10000000000000000", "uint64: 02000000000000000000000", "sint32: 2147483648",
    "sfixed32: 2147483648", "fixed32: 4294967296", "fixed64: -1", "bool: 2", "bool: yes",
    "bool: TRUE", "bool: 'true'", "bool: tru", "bool: -1", "float: 0x1", "float: 010",
    "float: 01.5", "float: .", "float: -", "float: e5", "float: 1e", "float: 1e+", "float: 1.5.5",
    "float: 1.5x", "float: infi", "float: 'a'", "double: --1", "color: 'GREEN'", "color: 1.5",
    "color: 2147483648", "color: GREEN-", "string: a", "string: 1", "string: 'a", "string: 'a\"",
    "string: 'a\n'", "string: 'a\\\n'", "string: 'a' 'b", "string: {}", r"string: '\400'",
    r"string: '\x'", r"string: '\xg'", r"string: '\u12'", r"string: '\u12g4'",
    r"string: '\U00110000'", r"string: '\U0001f60'", r"string: '\ud800'", r"string: '\udc00'",
    r"string: '\ud800\u0041'", r"string: '\ud83dx'", "leaf", "leaf:", "leaf: 1", "leaf: 'a'",
    "leaf: [{}]", "leaf {", "leaf { id: 1", "leaf { id: 1 >", "leaf < id: 1 }", "leaf { }}", "}",
    ">", "leaf { } leaf { }", "leaves: [{}", "leaves: [{},", "leaves: [{},]", "leaves: [{} {}]",
    "leaves: [1]", "leaves: [[{}]]", "int32_list [1]", "int32_list: [1,]", "int32_list: [,1]",
    "int32_list: [1 2]", "int32_list: [1; 2]", "int32_list: [1", "int32_list: [",
    "int32_list: ['a']", "int32_list: [{}]", "int32_list: [[1]]", "int32: 1,, int64: 2",
    "int32: 1;, int64: 2", ", int32: 1", ": 1", "'int32': 1", "int32 = 1", "int32: 1 @", "\x00",
    "int32: 1 \x00", "int32: 1 int32: 2", "string: 'a' string: 'b'", "bool: true bool: true",
    "double: 1 double: 2", "maybe: 0 maybe: 0", "pick_sint64: 0 pick_sint64: 0",
    "pick_sint64: 1 pick_string: ''", "pick_string: '' pick_leaf {}",
    "pick_leaf {} pick_bool: false", "numbers { key: 1 key: 2 }", "zoos { value {} value {} }",
    "none", "none 1", "none:", "none {", "none { a: 1 >", "none: 'a", "none: [1,]", "none: [1 2]",
    "none: @", "none { a }", "none: { a: }", "none { } }",
]  # fmt: skip

BETTER = {
    "int32: - 5": "int32: -5", "int32: -\n# comment\n5": "int32: -5",
    "double: - 1.5 float: - inf": "double: -1.5 float: -inf", "bool: 0x1": "bool: true",
    "bool_list: [01, 00]": "bool_list: [true, false]", "color: 01": "color: GREEN",
    r"string: '\ud83d\ude00\uD83D\U0000DE00'": "string: '😀😀'",
    "goo.gle/debugstr  int32: 1": "int32: 1", "goo.gle/debugonly    ": "",
    "goo.gle/debugproto leaf { id: 1 }": "leaf { id: 1 }",
    "string: [REDACTED] int32: 1": "int32: 1", "leaf: [REDACTED] int32: 1": "int32: 1",
    "leaves: [REDACTED] leaves { id: 1 }": "leaves { id: 1 }",
    "int32_list: [1, [REDACTED], 3]": "int32_list: [1, 3]",
    "[some.extension]: 1 int32: 2": "int32: 2",
    "[type.googleapis.com/some.Message] { a: 1 } int32: 2": "int32: 2",
    "leaf { [x.y] < > id: 1 }": "leaf { id: 1 }", "none: - 5 int32: 1": "int32: 1",
    "none [{}] int32: 1": "int32: 1", "color: BLUE int32: 1": "int32: 1",
    "color_list: [GREEN, BLUE, GREEN]": "color_list: [GREEN, RED, GREEN]",
    "\ufeffint32: 1": "int32: 1",
}  # fmt: skip

STRICTER = [
    "int32: +1", "int32: 1_000", "int32: 0b11", "int32: 0o17", "double: +1", "double: 1ff",
    "int32:\u00a01", "none-such: 1", r"string: '\q'",
]  # fmt: skip


def wire(message: Message) -> bytes:
    """Bytes that are the same for the same content."""
    return message.SerializeToString(deterministic=True)


def reference(text: str | bytes, kind: type[Message] = Zoo) -> bytes | None:
    """What google.protobuf.text_format reads, None where it refuses."""
    try:
        with warnings.catch_warnings():
            # Escapes that mean nothing are kept as they are, and deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            return wire(text_format.Parse(text, kind(), allow_unknown_field=True))
    except (text_format.ParseError, ValueError, RecursionError):
        # A number that is out of range for an enum is a ValueError.
        return None


def scanned(text: str | bytes, kind: type[Message] = Zoo) -> TextResult:
    """What the scanner makes of it."""
    return text_to_wire(text.encode() if isinstance(text, str) else text, kind.DESCRIPTOR)
