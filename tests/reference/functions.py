"""The time of a program's own functions in a trace of PyTorch, read slowly and plainly.

Every piece of a thread's time is of the innermost call or op that covers it. A call is of its own
function; an op of the function whose call is innermost around it, or where a node of the backward
pass is nearer than that call, of the function that ran the op with the node's ``Sequence number``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.reference.kineto import Event, Trace

_NODE = "autograd::engine::evaluate_function"
_WITHOUT_NAME = {"<listcomp>", "<lambda>", "<genexpr>", "<dictcomp>", "<setcomp>"}
Function = tuple[str, str, int]


def times(path: Path, own_files: str) -> dict[Function, tuple[int, int, int]]:
    """Calls, inclusive and self time (ps) of the functions of files that ``own_files`` matches."""
    reading = _Reading(Trace.of(path).events, own_files)
    own: dict[Function, int] = defaultdict(int)
    whole: dict[Function, int] = defaultdict(int)
    for event, around, spent in reading.pieces():
        chain = [one for one in (reading.function(call) for call in reversed(around)) if one]
        made = reading.made_by(event, around)
        if made:
            running = {reading.function(call) for call in reading.running(event)}
            for function in dict.fromkeys([*made, *chain]):
                if function in chain or function not in running:
                    whole[function] += spent
            if made[0] in chain or made[0] not in running:
                own[made[0]] += spent
        elif chain:
            own[chain[0]] += spent
            for function in set(chain):
                whole[function] += spent
    calls: dict[Function, int] = defaultdict(int)
    for event in reading.calls:
        calls[reading.function(event) or ("", "", 0)] += 1
    return {one: (calls[one], whole[one], own[one]) for one in whole}


class _Reading:
    def __init__(self, events: list[Event], own_files: str) -> None:
        self._own = re.compile(own_files)
        self._threads: dict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in events:
            if event.category in {"python_function", "cpu_op"}:
                self._threads[event.thread].append(event)
        self._around: dict[int, list[Event]] = {}
        self._pieces: list[tuple[Event, list[Event], int]] = []
        for thread in self._threads.values():
            self._nest(thread)
        self._forward: dict[int, list[Event]] = defaultdict(list)
        for event, around, _ in self._pieces:
            number = event.args.get("Sequence number", -1)
            if number >= 0 and not any(one.name.startswith(_NODE) for one in around):
                self._forward[number].append(event)
        self.calls = [one for thread in self._threads.values() for one in thread
                      if self.function(one)]  # fmt: skip

    def function(self, event: Event) -> Function | None:
        result = re.fullmatch(r"(.*)\((\d+)\): (.*)", event.name)
        if event.category != "python_function" or not result or not self._own.search(result[1]):
            return None
        return None if result[3] in _WITHOUT_NAME else (result[3], result[1], int(result[2]))

    def _nest(self, thread: list[Event]) -> None:
        thread.sort(key=lambda one: (one.start_ps, -one.end_ps))
        counted = [one for one in thread if one.category == "cpu_op" or self.function(one)]
        spent = {id(one): one.end_ps - one.start_ps for one in counted}
        stack: list[Event] = []
        for event in counted:
            while stack and stack[-1].end_ps < event.end_ps:
                stack.pop()
            self._around[id(event)] = [*stack, event]
            if stack:
                spent[id(stack[-1])] -= event.end_ps - event.start_ps
            stack.append(event)
        self._pieces += [(one, self._around[id(one)], spent[id(one)]) for one in counted]

    def pieces(self) -> Iterator[tuple[Event, list[Event], int]]:
        yield from self._pieces

    def running(self, event: Event) -> list[Event]:
        return [one for one in self.calls if one.start_ps <= event.start_ps < one.end_ps]

    def made_by(self, event: Event, around: list[Event]) -> list[Function]:
        """The functions around the op of the forward pass whose gradient an op is part of."""
        if event.category != "cpu_op":
            return []
        node = None
        for one in reversed(around):
            if self.function(one):
                return []
            if one.name.startswith(_NODE) and one.args.get("Sequence number", -1) >= 0:
                node = one
                break
            if one.name.startswith(_NODE):
                break
        if node is None:
            return []
        number = node.args["Sequence number"]
        forward = [one for one in self._forward[number] if one.start_ps <= node.start_ps]
        if not forward:
            return []
        last = max(forward, key=lambda one: one.start_ps)
        calls = (self.function(one) for one in reversed(self._around[id(last)]))
        return list(dict.fromkeys(one for one in calls if one))
