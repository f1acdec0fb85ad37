"""Recording with PyTorch's profiler: its allocators report every allocation.

Those of the CPU count from the first profile of the process on, so that what lived before is in no
total. It is added: the storages of the tensors that Python holds when the recording begins.
"""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from peakline.errors import UsageError

_TOTAL, _CPU = "Total Allocated", 0


class Torch:
    """PyTorch's profiler around a test."""

    silence = "PyTorch's allocators reported nothing while the test ran"

    def __init__(self) -> None:
        try:
            self._torch: Any = import_module("torch")
            self._profiler: Any = import_module("torch.profiler")
        except ImportError as error:
            raise UsageError(f"PyTorch cannot be imported: {error}") from None
        self.at_most: Mapping[str, int] = {}
        self._folder = Path()
        self._before = 0
        self._recording: Any = None

    def start(self, folder: Path) -> None:
        """Begin; raises UsageError where the profiler runs already."""
        if self._torch.autograd._profiler_enabled():  # noqa: SLF001 (there is no public one)
            raise UsageError(
                "PyTorch's profiler runs already; only one profile can be taken at a time"
            )
        # The garbage of tests before is not this test's.
        gc.collect()
        self._before = self._live_bytes()
        kinds = self._profiler.ProfilerActivity
        activities = [kinds.CPU, *([kinds.CUDA] if self._torch.cuda.is_available() else ())]
        with warnings.catch_warnings():
            # Where the machine has no device for it, the profiler warns at every start.
            warnings.simplefilter("ignore")
            self._recording = self._profiler.profile(
                activities=activities, profile_memory=True, record_shapes=True, acc_events=True
            )
            self._recording.start()
        self._folder = folder

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """The block is a step."""
        with self._profiler.record_function(f"ProfilerStep#{number}"):
            yield

    def stop(self) -> None:
        """End, and write the trace below the folder."""
        if not self._torch.autograd._profiler_enabled():  # noqa: SLF001 (as above)
            raise UsageError("the test stopped PyTorch's profiler itself")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._recording.stop()
        target = self._folder / "plugins" / "profile" / "test" / "test.pt.trace.json"
        target.parent.mkdir(parents=True)
        self._recording.export_chrome_trace(str(target))
        if self._before:
            trace = json.loads(target.read_bytes())
            add_before(trace, self._before)
            target.write_text(json.dumps(trace), encoding="utf-8")

    def _live_bytes(self) -> int:
        """The bytes of the CPU's tensors that Python holds, each storage once."""
        sizes: dict[int, int] = {}
        for one in gc.get_objects():
            # Not isinstance: an object of another library may run code when it is looked at.
            if issubclass(type(one), self._torch.Tensor) and one.device.type == "cpu":
                try:
                    storage = one.untyped_storage()
                    sizes[storage.data_ptr()] = storage.nbytes()
                except (NotImplementedError, RuntimeError):
                    continue  # sparse, fake and functional tensors have none
        return sum(sizes.values())


def add_before(trace: dict[str, Any], before: int) -> None:
    """Add ``before`` bytes, which lived when the recording began, to the CPU's totals of ``trace``.

    Where nothing was allocated, one record says that they lived.
    """
    events = trace["traceEvents"]
    found = [
        event["args"]
        for event in events
        if event.get("name") == "[memory]" and event.get("args", {}).get("Device Type") == _CPU
    ]
    for facts in found:
        facts[_TOTAL] = facts.get(_TOTAL, 0) + before
    if found:
        return
    times = [event["ts"] for event in events if event.get("ph") == "X"]
    facts = {_TOTAL: before, "Bytes": before, "Addr": 1, "Device Id": -1, "Device Type": _CPU}
    events.append(
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 0, "tid": 0,
         "ts": min(times, default=0), "args": facts}
    )  # fmt: skip
