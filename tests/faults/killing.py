"""Commands that end by SIGKILL at random moments: see `tests.faults.zygote`."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.faults import zygote


@dataclass(frozen=True)
class Ended:
    """``code`` is negative for a signal; the calls are only of what ran to its end."""

    code: int
    calls: int = 0
    began: int = 0
    done: int = 0

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Commands:
    """Runs commands, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *words: object, at: int | None = None) -> Ended:
        """Run one, to its end or to the call with the number ``at``."""
        command = {"words": list(map(str, words)), "at": at}
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


@contextmanager
def commands() -> Iterator[Commands]:
    """A process that runs commands until the end of the block."""
    words = [sys.executable, zygote.__file__]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Commands(process)
        finally:
            process.stdin.close()


def moments(ended: Ended, count: int, seed: int) -> list[int]:
    """So many calls of a command that `ended`: of four one is anywhere, one while it writes, two
    are where it brings that to an end.
    """
    chance = random.Random(seed)
    last = max(ended.began, ended.done - 200), ended.done + 20
    ranges = [last, (ended.began, ended.done), last, (1, ended.calls)]
    return [chance.randint(*ranges[number % len(ranges)]) for number in range(count)]
