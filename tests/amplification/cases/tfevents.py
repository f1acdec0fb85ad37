"""Events files that no writer makes."""

from tests.amplification.cases import graph_def, run_metadata
from tests.amplification.wire import many, number, part, repeated
from tests.formats.format_samples import events_record

_VERSION = events_record(part(3, "brain.Event:2"))


def empty_records(size: int) -> bytes:
    return _VERSION + events_record(part(4, graph_def.nodes(100))) + many(size, events_record(b""))


def zero_bytes(size: int) -> bytes:
    return _VERSION + bytes(size)


def graphs(size: int) -> bytes:
    return _VERSION + many(size, events_record(part(4, graph_def.nodes(20))))


def runs(size: int) -> bytes:
    """A run of very little per tag."""
    return _VERSION + repeated(
        size, lambda n: events_record(part(8, part(1, f"t{n}") + part(2, run_metadata.runs(30))))
    )


def runs_of_one_tag(size: int) -> bytes:
    content = run_metadata.runs(30)
    return _VERSION + repeated(
        size, lambda n: events_record(number(2, n) + part(8, part(1, "t") + part(2, content)))
    )


def partitions(size: int) -> bytes:
    """Runs of thousands of graphs with a node each."""
    node = part(1, part(1, "a") + part(2, "X"))
    content = run_metadata.runs(100) + many(min(size // 4, 20_000), part(3, node))
    return _VERSION + repeated(
        size, lambda n: events_record(part(8, part(1, f"t{n}") + part(2, content)))
    )


def long_tag(size: int) -> bytes:
    """A run of very many graphs, none of them good, with a long name."""
    content = run_metadata.runs(100) + many(size // 2, part(3, part(1, part(1, "!"))))
    return _VERSION + events_record(part(8, part(1, "t" * (size // 2)) + part(2, content)))


def deep_graph(size: int) -> bytes:
    return _VERSION + events_record(part(4, graph_def.deep_scope(size)))


def summaries(size: int) -> bytes:
    return (
        _VERSION
        + events_record(part(4, graph_def.nodes(100)))
        + events_record(part(5, many(size, part(1))))
    )
