"""XLA's heap by its rules alone: every piece against every other, no structure, no arrays."""

from dataclasses import dataclass, field

ALLOCATE, FREE, SHARE = range(3)


@dataclass
class Value:
    """A value that takes memory, and those that share it."""

    size: int
    begin: int
    end: int | None = None
    sharers: list[int] = field(default_factory=list)
    is_first: bool = True


def group(values, number):
    """A value with all that share its memory, of any degree."""
    result, waiting = [], [number]
    while waiting:
        result.append(waiting.pop())
        waiting += values[result[-1]].sharers
    return result


def values_of(events, sizes):
    """The values of a heap's events (kind, value, shared with), by number."""
    canonical = {}
    for kind, value, other in events:
        if kind != FREE:
            canonical[value] = canonical.get(other, other) if kind == SHARE else value
    largest = {}
    for value, root in canonical.items():
        largest[root] = max(largest.get(root, 0), sizes[value])
    values, time = {}, 0
    for kind, value, other in events:
        size = largest[canonical[value]]
        if not size:
            continue
        if kind == FREE:
            values[value].end = time
        else:
            values[value] = Value(size, time, is_first=kind == ALLOCATE)
            if kind == SHARE:
                values[other].sharers.append(value)
        time += 1
    for one in values.values():
        one.end = time if one.end is None else one.end
    return values


def place(values, alignment, order):
    """Offsets by value, and the size of the heap."""

    def key(number):
        own = values[number]
        if order == "spatial":
            return -own.size, own.begin - own.end, number
        members = [values[one] for one in group(values, number)]
        length = max(one.end for one in members) - min(one.begin for one in members)
        return -length, -own.size, number

    offsets, heap = {}, 0
    for number in sorted((n for n, value in values.items() if value.is_first), key=key):
        mine = group(values, number)
        size = values[number].size
        taken = sorted(
            (offsets[other], values[other].size)
            for other in offsets
            if any(
                values[other].begin <= values[one].end and values[one].begin <= values[other].end
                for one in mine
            )
        )
        free, gaps = 0, []
        for at, used in taken:
            if at - free >= size:
                gaps.append((at - free, free))
            free = max(free, -(-(at + used) // alignment) * alignment)
        where = min(gaps)[1] if gaps else free
        offsets |= dict.fromkeys(mine, where)
        heap = max(heap, where + size)
    return offsets, heap


def best(values, alignment):
    """Offsets, size of the heap and order: the smaller of both orders, the first of equal ones."""
    tried = ((*place(values, alignment, order), order) for order in ("spatial", "temporal"))
    return min(tried, key=lambda result: result[1])
