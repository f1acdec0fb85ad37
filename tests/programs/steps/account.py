"""What a program says of its own steps: from when to when each lasted, by the program's clock.

A mark cannot be read from inside the program to the nanosecond. So every end of a step is two
times: one from just before the call that sets the mark, one from just after it. The mark in the
profile must lie between them. Times are nanoseconds since 1970.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any


def output(description: str | None) -> Path:
    """Where the recording goes, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, required=True, help="the recording (gzip)")
    path: Path = parser.parse_args().output
    return path


class Account:
    """The steps of one program, in order."""

    def __init__(self, marked_by: str) -> None:
        """``marked_by`` is the call that marks a step, empty where none does."""
        self._marked_by = marked_by
        self._steps: list[dict[str, Any]] = []
        self._profile_ns = [0, 0]

    def starts(self) -> None:
        """The profile is about to start."""
        self._profile_ns[0] = time.time_ns()

    def stopped(self) -> None:
        """The profile has stopped."""
        self._profile_ns[1] = time.time_ns()

    @contextmanager
    def step(
        self,
        name: str,
        number: int | None,
        mark: Callable[[], AbstractContextManager[Any]] = nullcontext,
        **more: Any,
    ) -> Iterator[None]:
        """One step, inside the mark that ``mark`` makes: some begin when they are made."""
        before = time.time_ns()
        with mark():
            self.begin(name, number, [before, time.time_ns()], **more)
            yield
            ending = time.time_ns()
        self.end([ending, time.time_ns()])

    def begin(self, name: str, number: int | None, between_ns: list[int], **more: Any) -> None:
        """A step began within ``between_ns``."""
        self._steps.append({"name": name, "number": number, "begins_ns": between_ns, **more})

    def end(self, between_ns: list[int], **more: Any) -> None:
        """The step begun last ended within ``between_ns``."""
        self._steps[-1] |= {"ends_ns": between_ns, **more}

    def passes(self, call: Callable[[], None], name: str, number: int, **more: Any) -> None:
        """``call`` ends the step before, if there is one, and begins the next."""
        before = time.time_ns()
        call()
        between = [before, time.time_ns()]
        if self._steps:
            self.end(between)
        self.begin(name, number, between, **more)

    def tell(self, **more: Any) -> None:
        """Print all of it, as one JSON object."""
        truth = {"marked_by": self._marked_by, **more, "profile_ns": self._profile_ns}
        json.dump(truth | {"steps": self._steps}, sys.stdout)
