"""A heap that no program has (perftools/profiles/profile.proto)."""

from tests.amplification.wire import many, number, part, repeated

_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _TEXT = 1, 2, 3, 4, 5, 6
_TEXTS = b"".join(part(_TEXT, text) for text in ("", "inuse_space", "bytes", "f", "a.py", "kind"))
_HEAD = part(_TYPE, number(1, 1) + number(2, 2))


def _sample(locations: bytes, value: int = 100, labels: bytes = b"") -> bytes:
    return part(_SAMPLE, part(1, locations) + number(2, value) + labels)


def _location(key: int, lines: bytes = b"") -> bytes:
    return part(_LOCATION, number(1, key) + lines)


def _heap(*content: bytes) -> bytes:
    return _HEAD + _sample(b"\1") * 50 + b"".join(content) + _TEXTS


def empty_samples(size: int) -> bytes:
    return _heap(_sample(b"\1"), many(size, part(_SAMPLE)))


def samples(size: int) -> bytes:
    place = _location(1, part(4, number(1, 1) + number(2, 7)))
    function = part(_FUNCTION, number(1, 1) + number(2, 3) + number(4, 4))
    return _heap(many(size, _sample(b"\1")), place, function)


def deep_stack(size: int) -> bytes:
    return _heap(_sample(b"\1" * size), _location(1))


def deep_stacks(size: int) -> bytes:
    """A thousand stacks, all of the same frames but for the first."""
    function = part(_FUNCTION, number(1, 1) + number(2, 3) + number(4, 4))
    places = b"".join(_location(n, part(4, number(1, 1) + number(2, n))) for n in range(1, 128))
    deep = b"\2" * (size // 1000)
    return _heap(repeated(size, lambda n: _sample(bytes((n % 127 + 1, *deep)))), places, function)


def inlined(size: int) -> bytes:
    """One place of very many inlined lines, which every sample names."""
    lines = many(size // 2, part(4, number(1, 1) + number(2, 7)))
    function = part(_FUNCTION, number(1, 1) + number(2, 3) + number(4, 4))
    return _heap(many(size // 2, _sample(b"\1")), _location(1, lines), function)


def inlined_stacks(size: int) -> bytes:
    """As `inlined`, in every sample with another place in front."""
    lines = many(size // 3, part(4, number(1, 1) + number(2, 7)))
    function = part(_FUNCTION, number(1, 1) + number(2, 3) + number(4, 4))
    places = repeated(size // 3, lambda n: _location(n + 2))
    samples = b"".join(
        part(_SAMPLE, number(1, n + 2) + number(1, 1) + number(2, 9))
        for n in range(size // 3 // 12)
    )
    return _heap(samples, _location(1, lines), places, function)


def inlined_repeated(size: int) -> bytes:
    """A sample that names the place of very many lines again and again."""
    lines = many(size // 2, part(4, number(1, 1) + number(2, 7)))
    function = part(_FUNCTION, number(1, 1) + number(2, 3) + number(4, 4))
    return _heap(_sample(b"\1" * (size // 2)), _location(1, lines), function)


def locations(size: int) -> bytes:
    return _heap(_sample(b"\1"), repeated(size, _location))


def huge_ids(size: int) -> bytes:
    return _heap(
        repeated(
            size,
            lambda n: (
                part(_SAMPLE, number(1, (1 << 62) + n) + number(2, 7)) + _location((1 << 62) + n)
            ),
        )
    )


def functions(size: int) -> bytes:
    return _heap(_sample(b"\1"), repeated(size, lambda n: part(_FUNCTION, number(1, n))))


def texts(size: int) -> bytes:
    return _heap(_sample(b"\1")) + many(size, part(_TEXT))


def long_text(size: int) -> bytes:
    """The name of a function, of which every sample has one frame."""
    text = part(_TEXT, "x" * (size // 2))
    function = part(_FUNCTION, number(1, 1) + number(2, 6) + number(4, 6))
    places = repeated(size // 4, lambda n: _location(n, part(4, number(1, 1) + number(2, n))))
    samples = repeated(size // 4, lambda n: part(_SAMPLE, number(1, n) + number(2, 7)))
    return _heap(samples, places, function) + text


def labels(size: int) -> bytes:
    return _heap(_sample(b"\1", labels=many(size, part(3))))


def long_labels(size: int) -> bytes:
    """Labels that all refer to one long text."""
    text = part(_TEXT, "x" * (size // 2))
    label = part(3, number(1, 3) + number(2, 6))
    return _heap(many(size // 2, _sample(b"\1", labels=label))) + text


def repeated_labels(size: int) -> bytes:
    text = part(_TEXT, "x" * (size // 2))
    label = part(3, number(1, 3) + number(2, 6))
    return _heap(_sample(b"\1", labels=many(size // 2, label))) + text


def values(size: int) -> bytes:
    return _heap(part(_SAMPLE, part(1, b"\1") + part(2, b"\x64" * size)))


def sample_types(size: int) -> bytes:
    return _heap(_sample(b"\1"), many(size, part(_TYPE)))


def mappings(size: int) -> bytes:
    return _heap(_sample(b"\1"), many(size, part(_MAPPING)))


def devices(size: int) -> bytes:
    texts = repeated(size // 2, lambda n: part(_TEXT, f"d{n}"))
    label = lambda n: part(3, number(1, 5) + number(2, 6 + n))  # noqa: E731
    return _HEAD + repeated(size // 2, lambda n: _sample(b"\1", labels=label(n))) + _TEXTS + texts
