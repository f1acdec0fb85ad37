"""Which op of the forward pass each part of a PyTorch backward pass belongs to.

PyTorch writes an event around every node of a backward pass (``evaluate_function``,
torch/csrc/autograd/engine.cpp). Ops of the forward pass and the nodes that compute their gradients
have the same ``Sequence number``: see "Forward-backward correlation" in the documentation of
``torch.autograd.profiler.emit_nvtx``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import Trace, nesting_of, trace_of

NODE = "autograd::engine::evaluate_function"
"""How the events of nodes begin."""


@dataclass(frozen=True, eq=False, repr=False)
class Autograd(Brief):
    """Per event of ``trace``: its ``parent``, the ``number`` that autograd gave it (-1 for none:
    gradients were off), and whether it ``is_node``.
    """

    trace: Trace
    parent: AnyArray
    number: Int64Array
    is_node: BoolArray

    @property
    def has_numbers(self) -> bool:
        """Whether any event has one."""
        return bool((self.number >= 0).any())

    def forward_of(self, events: AnyArray) -> Int64Array:
        """For each of ``events`` (-1 for none) that is part of a backward pass the op of the
        forward pass whose gradient is computed: the last before it with the number of its node. -1
        for the others, and where it is not recorded.
        """
        result = np.full(events.size, -1, np.int64)
        node = self._nodes(events)
        places = np.flatnonzero(node >= 0)
        numbered = self.forward_events
        if not (places.size and numbered.size):
            return result
        start = self.trace.start
        # Ops and nodes in one order of number and time: before a node stands its op.
        every = np.concatenate([numbered, node[places]])
        is_wanted = np.arange(every.size) >= numbered.size
        order = np.lexsort((is_wanted, start[every], self.number[every]))
        is_wanted = is_wanted[order]
        before = np.cumsum(~is_wanted)[is_wanted] - 1
        place = places[order[is_wanted] - numbered.size]
        op = numbered[np.maximum(before, 0)]
        same = (before >= 0) & (self.number[op] == self.number[node[place]])
        result[place[same]] = op[same]
        return result

    def _nodes(self, events: AnyArray) -> Int64Array:
        """The innermost node with a number around each event; -1 for none."""
        result = np.full(events.size, -1, np.int64)
        at = events.astype(np.int64)
        while (at >= 0).any():
            is_found = (at >= 0) & (result < 0) & self.is_node[at] & (self.number[at] >= 0)
            result[is_found] = at[is_found]
            at = np.where((at >= 0) & (result < 0), self.parent[at], -1)
        return result

    @cached_property
    def forward_events(self) -> Int64Array:
        """The numbered events of forward passes, by number and time."""
        numbered = np.flatnonzero(self.number >= 0)
        inside = np.zeros(numbered.size, np.bool_)
        at = numbered
        while (at >= 0).any():
            inside |= (at >= 0) & self.is_node[at]
            at = np.where((at >= 0) & ~inside, self.parent[at], -1)
        forward = numbered[~inside]
        return forward[np.lexsort((self.trace.start[forward], self.number[forward]))]


@once
def autograd_of(profile: Profile) -> Autograd:
    """What autograd recorded, read once; no numbers where a format has none.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    names = [*(name.startswith(NODE) for name in trace.name.values), False]
    is_node = np.array(names, np.bool_)[trace.name.codes]
    number = np.full(trace.size, -1, np.int64)
    stat = profile.event_rules.gradient_number
    if trace.source == "events" and stat and "event_stats" in profile.tables:
        stats = profile.typed_stats(frozenset((stat,)))
        place = trace.places(stats.array("event_id"))
        # The profiler writes -1 or leaves it out where there is none.
        known = np.where(stats.is_valid("integer"), stats.array("integer"), -1)
        is_one = (place >= 0) & (known >= 0)
        number[place[is_one]] = known[is_one]
    return Autograd(trace, nesting_of(profile).parent, number, is_node)
