"""Where the graphs of a run lie: partition graphs and those of its functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.graph_def.source import GraphSpan, submessages
from peakline.formats.run_metadata.runs import Runs
from peakline.wire import Spans

_PARTITIONS, _FUNCTIONS = 3, 4
"""RunMetadata.partition_graphs and .function_graphs."""
_KINDS = ("function_partition", "pre_optimization", "post_optimization")
"""The fields 1 to 3 of RunMetadata.FunctionGraphs."""


def find_graphs(runs: Runs) -> list[GraphSpan]:
    """All graphs of all runs, in the order of `RunMetadata`'s fields.

    Names are such as ``partition 0`` and ``function 2 partition 1``; where there are several
    runs, the run's name comes first.
    """
    places: list[_Place] = []
    run, spans = runs.fields(_PARTITIONS)
    for number, owner, *span in _spans(run, spans):
        places.append(_Place(owner, -1, 0, number, "partition", *span))
    run, functions = runs.fields(_FUNCTIONS)
    function = (np.arange(run.size) - np.searchsorted(run, run)).tolist()
    owners = run.tolist()
    for which, kind in enumerate(_KINDS):
        row, spans, _ = submessages(runs.buffer, functions.start, functions.length, which + 1)
        for number, at, *span in _spans(row, spans):
            places.append(_Place(owners[at], function[at], which, number, kind, *span))
    return [_named(runs, place) for place in sorted(places)]


class _Place(NamedTuple):
    """One graph: its run, function (-1: none), kind and number, in the order of the fields."""

    run: int
    function: int
    which: int
    number: int
    kind: str
    start: int
    length: int


def _spans(parent: Int64Array, spans: Spans) -> Iterator[tuple[int, int, int, int]]:
    """Place among those of its parent, parent, start and length of each span."""
    number = np.arange(parent.size) - np.searchsorted(parent, parent)
    columns = (number, parent, spans.start, spans.length)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _named(runs: Runs, place: _Place) -> GraphSpan:
    words = [runs.runs[place.run].name] if len(runs.runs) > 1 else []
    words += [f"function {place.function}"] if place.function >= 0 else []
    words += [place.kind.replace("_", " ") if place.which else f"partition {place.number}"]
    return GraphSpan(" ".join(words), place.kind, place.start, place.length)


def only_graph_unnamed(graphs: list[GraphSpan]) -> list[GraphSpan]:
    """The same list; a graph that is the only one of its file needs no name."""
    return [replace(graphs[0], name="")] if len(graphs) == 1 else graphs
