"""What one host does for an answer, wherever it is done: here, in another process, on a cluster."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from peakline.deadline import Deadline, check_deadline, current_deadline, within
from peakline.engine.answers import Answer
from peakline.engine.profile_cache import open_profile
from peakline.errors import PeaklineError, RemoteError, UnforeseenError, UsageError, faults_of
from peakline.repository import HostFile, is_url
from peakline.tables import Profile
from peakline.tools import Parameters, find_tool

CONTRIBUTION = ""
"""The format of what a host gives to a tool's `combine`: no format of any tool."""


class NoWorkersError(RemoteError):
    """There is nobody to ask: what failed is not the host that was to be read."""


class LostWorkerError(RemoteError):
    """Who worked on it ended in the middle: killed by somebody, or by what the host needs."""


class Task(Protocol):
    """What is put to one host: a dataclass that can be pickled."""

    @property
    def file(self) -> HostFile:
        """The host's file."""

    @property
    def max_unpacked_bytes(self) -> int | None:
        """What it may expand to."""

    def answer(self, profile: Profile) -> Answer:
        """The answer about the open profile."""


@dataclass(frozen=True)
class HostTask:
    """A tool's question to one host; ``format`` is one of the tool's, or `CONTRIBUTION`."""

    tool: str
    file: HostFile
    question: Parameters
    format: str
    max_unpacked_bytes: int | None = None

    def answer(self, profile: Profile) -> Answer:
        """As `ask_host`."""
        return ask_host(self, profile)


def ask_host(task: HostTask, profile: Profile) -> Answer:
    """The tool's answer about an open profile, with the warnings that concern it."""
    tool = find_tool(task.tool).answering(task.question)
    with profile.question() as warnings:
        if task.format != CONTRIBUTION:
            content = tool.answer(profile, task.question, task.format)
        else:
            content = pickle.dumps(tool.contribution(profile, task.question), protocol=5)
        return Answer(content, task.format, tuple(warnings()))


def contributed(answer: Answer) -> Any:
    """The value that a host gave to `combine`; its bytes were written by `ask_host`."""
    return pickle.loads(answer.content)  # noqa: S301 (our own worker wrote it)


def request(task: Task) -> bytes:
    """``task`` for `reply`, with the time that is left for it; raises as `check_deadline`."""
    check_deadline()
    deadline = current_deadline()
    file = task.file
    if not is_url(file.path):
        # Whoever reads it may stand in another directory.
        file = replace(file, path=str(Path(file.path).absolute()))
    given: Any = task
    try:
        return pickle.dumps(
            (_version(), replace(given, file=file), deadline and deadline.remaining()), protocol=5
        )
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise UsageError(f"host {file.host}: cannot be read elsewhere: {error}") from error


def reply(request: bytes) -> bytes:
    """Do what `request` wrote: open the file, ask the tool, close it. Never raises."""
    result: object
    try:
        with faults_of("a worker"):
            result = _done(request)
    except PeaklineError as error:
        result = error.with_traceback(None)
    return pickle.dumps(result, protocol=5)


def _done(request: bytes) -> object:
    version, task, seconds = pickle.loads(request)  # noqa: S301 (whoever started us wrote it)
    if version != _version():
        return RemoteError(
            f"the worker has Peakline {_version()}, the one who asks {version}; install the same"
        )
    with (
        within(Deadline(seconds)),
        faults_of(task.file.path),
        open_profile(task.file, task.max_unpacked_bytes) as profile,
    ):
        answer: Answer = task.answer(profile)
        return answer


def understood(answer: bytes) -> Answer:
    """What `reply` returned; raises the error that it carries."""
    result = pickle.loads(answer)  # noqa: S301 (our own worker wrote it)
    if isinstance(result, Answer):
        return result
    if isinstance(result, UnforeseenError):
        # Nobody reads the log of a worker.
        result.log()
    if isinstance(result, PeaklineError):
        raise result
    raise TypeError(f"a worker answers {result!r:.200}")


def _version() -> str:
    return version("peakline")
