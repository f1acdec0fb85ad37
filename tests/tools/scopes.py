"""The ``graph_scopes`` tool as a person goes through it: its answers, and what holds a node."""

import json
from collections import Counter

from peakline.tools.graph_scopes import TOOL, GraphScopesParameters


def ask(profile, **parameters):
    return json.loads(TOOL.run(profile, GraphScopesParameters(**parameters), "json"))


def chains(profile, nodes):
    """What holds each node, the outermost first, as the details say it."""
    return [
        [one["item"] for one in ask(profile, view="item", item=node)["within"]]
        for node in range(nodes)
    ]


def shown_by(chain, node, opened):
    """The visible item that stands for a node: the outermost one that is in nothing closed."""
    for item in chain:
        if item not in opened:
            return item
    return node


def rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def assert_adds_up(scopes, total):
    """No id twice, no bytes lost, not too many."""
    assert len(set(scopes["id"])) == len(scopes["id"]) <= 300
    size_of = dict(zip(scopes["id"], scopes["bytes"], strict=True))
    inner = Counter()
    for parent, size in zip(scopes["parent"], scopes["bytes"], strict=True):
        inner[parent] += size
    assert inner.pop("") == total
    assert dict(inner) == {name: size_of[name] for name in inner}
