"""Sequences of requests that PyTorch's own allocator has served, as events for our model of it.

A line is a request: ``a`` number, bytes and stream of an allocation; ``f`` a free; ``r`` a use on
another stream; ``d`` a stream has done what it was given; ``e`` empties the cache; ``m`` sets the
memory fraction; ``b`` and ``x`` begin and end a use of a private pool, ``p`` gives the pool
up; ``g`` begins and ends the capture of a graph.
"""

import gzip
from collections import Counter, defaultdict

import numpy as np

from peakline.kernels import caching_layout as layout
from peakline.replay.torch_events import CachingEvents


class Sequence:
    """``events``, of each the request it comes from (``request``), and where the memory fraction is
    set (``fractions``: events before it, and which).
    """

    def __init__(self, path):
        self.kind, self.subject, self.request, self.fractions = [], [], [], []
        self.bytes, self.stream, self.pool = [], [], []
        self.number, self.uses, self.waits = {}, defaultdict(set), Counter()
        self.issued, self.done = defaultdict(list), Counter()
        self.pool_of, self.users = {}, Counter()
        self.captures, self.deferred, self.left = 0, [], []
        with gzip.open(path, "rt") as lines:
            for self.at, line in enumerate(lines):
                code, *fields = line.split()
                values = [float(one) if code == "m" else int(one) for one in fields]
                getattr(self, f"on_{code}")(*values)
        made = CachingEvents.of(self.kind, self.subject, self.bytes, self.stream, self.pool)
        for place, pool in self.left:
            made.subject[place] = np.flatnonzero(made.lane_pool == pool)[0]
        self.events, self.request = made, np.array(self.request)

    def add(self, kind, subject=0):
        self.kind.append(kind)
        self.subject.append(subject)
        self.request.append(self.at)

    def on_a(self, number, size, stream):
        if not self.captures:
            self.complete()
        self.number[number] = len(self.bytes)
        self.add(layout.ALLOCATE, len(self.bytes))
        self.bytes.append(size)
        self.stream.append(stream)
        self.pool.append(self.pool_of.get(stream, 0))

    def on_f(self, number):
        buffer = self.number.pop(number)
        if not self.uses[buffer]:
            self.add(layout.FREE, buffer)
            return
        self.add(layout.FREE_REQUESTED, buffer)
        self.deferred.append(buffer)
        if not self.captures:
            self.issue()

    def on_r(self, number, stream):
        buffer = self.number[number]
        if stream != self.stream[buffer]:
            self.uses[buffer].add(stream)

    def on_d(self, stream):
        self.done[stream] = len(self.issued[stream])

    def on_e(self):
        self.add(layout.EMPTY_CACHE)

    def on_m(self, fraction):
        self.fractions.append((len(self.kind), fraction))

    def on_b(self, pool, stream):
        self.pool_of[stream] = pool
        self.users[pool] += 1

    def on_x(self, pool):
        self.pool_of = {s: p for s, p in self.pool_of.items() if p != pool}

    def on_p(self, pool):
        self.users[pool] -= 1
        if not self.users[pool]:
            self.left.append((len(self.kind), pool))
            self.add(layout.POOL_IS_LEFT)

    def on_g(self, _stream, capture):
        self.captures += 1 if capture else -1
        self.add(layout.CAPTURE_BEGINS if capture else layout.CAPTURE_ENDS)

    def issue(self):
        for buffer in self.deferred:
            self.waits[buffer] = len(self.uses[buffer])
            for stream in self.uses[buffer]:
                self.issued[stream].append(buffer)
        self.deferred = []

    def complete(self):
        """What other streams are done with is free before the next allocation."""
        self.issue()
        for stream in sorted(self.issued):
            while self.done[stream]:
                self.done[stream] -= 1
                buffer = self.issued[stream].pop(0)
                self.waits[buffer] -= 1
                if not self.waits[buffer]:
                    self.add(layout.FREE_COMPLETED, buffer)
