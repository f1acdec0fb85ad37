"""What every tree of scopes of the ``live_memory`` tool must hold."""

from collections import Counter


def assert_adds_up(scopes, total):
    """No id twice, no bytes lost, not too many."""
    assert len(set(scopes["id"])) == len(scopes["id"]) <= 300
    size_of = dict(zip(scopes["id"], scopes["bytes"], strict=True))
    inner = Counter()
    for parent, size in zip(scopes["parent"], scopes["bytes"], strict=True):
        inner[parent] += size
    assert inner.pop("") == total
    assert dict(inner) == {name: size_of[name] for name in inner}
