"""Self times and runs of a step by straight loops over the events: what tools are compared with."""

from __future__ import annotations

from collections import Counter
from typing import Any

DATA_OF_STEPS = (
    "programs/time/slow_step.xplane.pb.gz", "programs/time/input_bound.xplane.pb.gz",
    "programs/time/recompiling.xplane.pb.gz", "programs/time/eager_loop.xplane.pb.gz",
    "programs/steps/jax_pmap.xplane.pb.gz", "programs/steps/jax_scan.xplane.pb.gz",
    "programs/steps/jax_two_functions.xplane.pb.gz", "programs/steps/tf_cut_off.xplane.pb.gz",
    "programs/steps/tf_keras_gru.xplane.pb.gz", "programs/steps/tf_train_eval.xplane.pb.gz",
    "programs/steps/torch_loader.pt.trace.json.gz", "programs/steps/torch_threads.pt.trace.json.gz",
    "programs/steps/torch_train_eval.pt.trace.json.gz",
)  # fmt: skip
"""Profiles with steps, of each framework."""


class Events:
    """All timed events of a profile, line by line."""

    def __init__(self, profile: Any) -> None:
        self.lines: dict[int, list[tuple[int, int, str]]] = {}
        for row in profile.table("events").to_pylist():
            if row["start_ps"] is not None:
                own = (row["start_ps"], row["start_ps"] + max(row["duration_ps"], 0), row["name"])
                self.lines.setdefault(row["line_id"], []).append(own)
        for events in self.lines.values():
            events.sort(key=lambda event: (event[0], -event[1]))

    def lines_of(self, name: str) -> set[int]:
        """The lines that have an event of that name."""
        return {line for line, events in self.lines.items() if any(e[2] == name for e in events)}

    def runs(self, line: int, begin: int, end: int) -> Counter[str]:
        """How many events of each name lie in a window, also in part."""
        result: Counter[str] = Counter()
        for start, stop, name in self.lines[line]:
            if start < end and stop > begin and start < stop:
                result[name] += 1
        return result

    def self_times(self, line: int, begin: int, end: int) -> Counter[str]:
        """The self time of each name within a window: an event without what it holds directly."""
        events = [one for one in self.lines[line] if one[0] < end and one[1] > begin]
        spent = [min(stop, end) - max(start, begin) for start, stop, _ in events]
        reach = [max(start, begin) for start, _, _ in events]
        for place, (start, stop, _) in enumerate(events):
            # What begins last of those that hold it whole.
            for around in range(place - 1, -1, -1):
                if events[around][1] >= stop:
                    spent[around] -= max(min(stop, end) - max(start, reach[around]), 0)
                    reach[around] = max(reach[around], min(stop, end))
                    break
        result: Counter[str] = Counter()
        for (_, _, name), own in zip(events, spent, strict=True):
            result[name] += own
        return result
