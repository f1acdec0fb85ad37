"""Random graphs: every field of graph.proto and what it imports, with names that meet."""

from peakline.schema import GraphDef

_NAMES = ("", "a", "b", "c/d", "f", "a:0", "b:1", "b:007", "^a", "^", "^a:1", ":", "a:", "a:b",
          "a:b:0", "a:b:1", "a:b:x", "a:b:00", "a:1:2:3", ":b:0", "a:99999999999", "a:-1", "é",
          'say "no"\\\n', "\x00\x7f")  # fmt: skip
_BYTES = (b"", b"loc:@a", b"\xff\xfe", b"a\\b\t", "\u2028é".encode(), b'"')
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
        return rng.choice(_BYTES)
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
