"""Recording with JAX's profiler: an allocator's events where there are any, else heaps.

The allocators of JAX's CPU device report nothing. There the heap is read before and after every
step, and the buffers of compiled programs are known from the compiler; `peakline.pytest.heaps`
makes one profile of both.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from peakline.errors import UsageError


class Jax:
    """JAX's profiler around a test."""

    silence = "JAX's heap was empty whenever it was read, and no compiled program ran"

    def __init__(self) -> None:
        try:
            self._jax: Any = import_module("jax")
        except ImportError as error:
            raise UsageError(f"JAX cannot be imported: {error}") from None
        self._heaps: list[bytes] = []
        self._folder = Path()
        self.at_most: Mapping[str, int] = {}

    def start(self, folder: Path) -> None:
        """Begin; raises UsageError where the profiler runs already."""
        profiler = self._jax.profiler
        # The garbage of tests before is not this test's.
        gc.collect()
        options = profiler.ProfileOptions()
        options.host_tracer_level = 2
        options.python_tracer_level = 0
        try:
            profiler.start_trace(str(folder), profiler_options=options)
        except RuntimeError as error:
            raise UsageError(f"JAX's profiler cannot be started: {error}") from None
        self._folder = folder
        self._read_heap()

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """The block is a step."""
        self._read_heap()
        with self._jax.profiler.StepTraceAnnotation("test", step_num=number):
            yield
            self._read_heap()

    def stop(self) -> None:
        """End, and write the XSpace, with what the heaps show where no allocator reported."""
        from peakline.pytest.heaps import add_heaps

        self._read_heap()
        try:
            self._jax.profiler.stop_trace()
        except RuntimeError:
            raise UsageError("the test stopped JAX's profiler itself") from None
        for file in self._folder.glob("plugins/profile/*/*.xplane.pb"):
            content, self.at_most = add_heaps(file.read_bytes(), self._heaps)
            file.write_bytes(content)

    def _read_heap(self) -> None:
        from peakline.pytest.heaps import MOMENT

        # What was dispatched has its buffers, and its programs have run, before the heap is read.
        for array in self._jax.live_arrays():
            if not array.is_deleted():
                array.block_until_ready()
        with self._jax.profiler.TraceAnnotation(f"{MOMENT}{len(self._heaps)}"):
            self._heaps.append(self._jax.profiler.device_memory_profile())
