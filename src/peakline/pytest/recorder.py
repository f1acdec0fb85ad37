"""One test's recording: begun and ended around its body, divided into steps by the test itself."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import peakline
from peakline.errors import InputError, PeaklineError, UsageError

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.findings.memory_answer import MemoryAnswer


class Framework(Protocol):
    """How a framework's profiler is driven."""

    silence: str
    """Why a recording may hold nothing about memory, and what to do."""
    at_most: Mapping[str, int]
    """By allocator, where the recording may have missed something: the most bytes in use."""

    def start(self, folder: Path) -> None:
        """Begin; raises UsageError where the profiler runs already."""

    def step(self, number: int) -> contextlib.AbstractContextManager[object]:
        """The block is a step; the first is number 1."""

    def stop(self) -> None:
        """End, and write the profile below the folder; raises UsageError where nothing runs."""


class Recorder:
    """The profile of the code of one test.

    The recording begins with the test's body, after its fixtures. It ends with the body, or when
    `stop`, `profile` or `memory` is used.
    """

    def __init__(self) -> None:
        self._framework: Framework | None = None
        self._folder: Path | None = None
        self._recording = False
        self._step: contextlib.AbstractContextManager[object] | None = None
        self._steps = 0
        self._profile: Profile | None = None
        self._path: Path | None = None

    @property
    def steps_taken(self) -> int:
        """How many steps have begun."""
        return self._steps

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """One step of the test; what it leaves in memory counts as growth.

        Raises UsageError inside another step, or when the recording has ended.
        """
        number = self._begin()
        try:
            yield
        except BaseException:
            # The test's own error is the one to be seen.
            with contextlib.suppress(Exception):
                self._end(number)
            raise
        self._end(number)

    def steps(self, count: int) -> Iterator[int]:
        """``for number in recorder.steps(20)``: every turn of the loop is a step."""
        for turn in range(count):
            number = self._begin()
            try:
                yield turn
            finally:
                self._end(number)

    def start(self, framework: Framework) -> None:
        """Begin to record; raises UsageError where a profiler runs already."""
        self._folder = Path(tempfile.mkdtemp(prefix="peakline-"))
        self._framework = framework
        framework.start(self._folder)
        self._recording = True

    def stop(self) -> None:
        """End the recording, and the step that is open; nothing where it has ended."""
        if not self._recording or self._framework is None or self._folder is None:
            return
        self._recording = False
        try:
            self._end(self._steps)
        finally:
            self._framework.stop()
        written = [
            file
            for pattern in ("*.xplane.pb", "*.pt.trace.json")
            for file in self._folder.glob(f"plugins/profile/*/{pattern}")
        ]
        if len(written) != 1:
            raise InputError(f"the profiler wrote {len(written)} profiles instead of one")
        self._path = written[0]

    @property
    def path(self) -> Path:
        """The file of the recording, which ends with this; it is removed after the test.

        Raises UsageError where nothing was recorded.
        """
        self.stop()
        if self._path is None:
            raise UsageError("nothing was recorded: the recording is the test's body")
        return self._path

    @property
    def profile(self) -> Profile:
        """The profile of what was recorded; the recording ends with this."""
        if self._profile is None:
            self._profile = peakline.open(self.path)
        return self._profile

    def memory(self, *, allocator: str | None = None) -> MemoryAnswer:
        """What ``peakline memory`` says of the recording, which ends with this."""
        return self.profile.memory(allocator=allocator)

    @property
    def silence(self) -> str:
        """Why the recording may hold nothing about memory."""
        return "" if self._framework is None else self._framework.silence

    @property
    def at_most(self) -> Mapping[str, int]:
        """By allocator, the most bytes that may have been in use, where the peak is the least."""
        return {} if self._framework is None else self._framework.at_most

    def close(self) -> None:
        """Remove the recording; ends it first where that was not done."""
        with contextlib.suppress(PeaklineError):
            self.stop()
        if self._profile is not None:
            self._profile.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self) -> int:
        if not self._recording or self._framework is None:
            raise UsageError(
                "no step can begin: the recording is the test's body, up to the first look at it"
            )
        if self._step is not None:
            raise UsageError("a step is open already; steps do not nest")
        step = self._framework.step(self._steps + 1)
        step.__enter__()
        self._step = step
        self._steps += 1
        return self._steps

    def _end(self, number: int) -> None:
        # The recording may have ended within the step, or a loop that was left may end late.
        if self._step is not None and self._steps == number:
            step, self._step = self._step, None
            step.__exit__(None, None, None)
