"""Recording a test with the profiler of its framework: JAX, TensorFlow or PyTorch."""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from peakline.errors import UsageError


class Jax:
    """JAX's profiler around a test: an allocator's events where there are any, else heaps.

    The allocators of JAX's CPU device report nothing. There the heap is read before and after every
    step, and the buffers of compiled programs are known from the compiler; `peakline.pytest.heaps`
    makes one profile of both.
    """

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


BFC = "TF_CPU_ALLOCATOR_USE_BFC"
"""The environment variable that gives TensorFlow's CPU device an allocator that reports."""


_TRUE = ("1", "true", "True", "TRUE")


def use_bfc() -> None:
    """Set the variable; raises UsageError where TensorFlow is imported already."""
    if os.environ.get(BFC) in _TRUE:
        return
    if "tensorflow" in sys.modules:
        raise UsageError(
            f"TensorFlow is imported already, so its CPU allocator is chosen: set {BFC}=1 in the "
            "environment of pytest"
        )
    os.environ[BFC] = "1"


class TensorFlow:
    """TensorFlow's profiler around a test: its allocators report every allocation."""

    silence = "TensorFlow's allocators reported nothing while the test ran"

    def __init__(self) -> None:
        try:
            self._tf: Any = import_module("tensorflow")
        except ImportError as error:
            raise UsageError(f"TensorFlow cannot be imported: {error}") from None
        self.at_most: Mapping[str, int] = {}

    def start(self, folder: Path) -> None:
        """Begin; raises UsageError where the profiler runs already, or memory is not reported."""
        devices = {device.device_type for device in self._tf.config.list_physical_devices()}
        if devices <= {"CPU"} and os.environ.get(BFC) not in _TRUE:
            # Its own allocator reports nothing, or with oneDNN the large buffers only.
            raise UsageError(
                f"TensorFlow's CPU device reports its memory only with {BFC}=1 in the environment "
                "before TensorFlow is imported: set it, give --peakline-tf-bfc, or put "
                "peakline_tensorflow_bfc = true into pytest's settings"
            )
        profiler = self._tf.profiler.experimental
        # Allocators report through the host's tracer, at level 2.
        options = profiler.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
        )
        try:
            profiler.start(str(folder), options=options)
        except self._tf.errors.AlreadyExistsError:
            raise UsageError(
                "TensorFlow's profiler runs already; only one profile can be taken at a time"
            ) from None

    def step(self, number: int) -> Any:
        """The block is a step."""
        return self._tf.profiler.experimental.Trace("test", step_num=number, _r=1)

    def stop(self) -> None:
        """End, and write the XSpace."""
        try:
            self._tf.profiler.experimental.stop()
        except self._tf.errors.UnavailableError:
            raise UsageError("the test stopped TensorFlow's profiler itself") from None


_TOTAL, _CPU = "Total Allocated", 0


class Torch:
    """PyTorch's profiler around a test: its allocators report every allocation.

    Those of the CPU count from the first profile of the process on, so that what lived before is in
    no total. It is added: the storages of the tensors that Python holds when the recording begins.
    """

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
    result = [
        event["args"]
        for event in events
        if event.get("name") == "[memory]" and event.get("args", {}).get("Device Type") == _CPU
    ]
    for facts in result:
        facts[_TOTAL] = facts.get(_TOTAL, 0) + before
    if result:
        return
    times = [event["ts"] for event in events if event.get("ph") == "X"]
    facts = {_TOTAL: before, "Bytes": before, "Addr": 1, "Device Id": -1, "Device Type": _CPU}
    events.append(
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 0, "tid": 0,
         "ts": min(times, default=0), "args": facts}
    )  # fmt: skip
