"""The request to every host, as the capture clients of TensorFlow and JAX send it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from peakline import schema
from peakline.capture.address import Target
from peakline.errors import ExistsError, UsageError
from peakline.repository import Repository, host_file_name

_TOOLS = (
    "trace_viewer", "op_profile", "input_pipeline", "kernel_stats", "memory_viewer",
    "memory_profile", "overview_page", "pod_viewer", "tensorflow_stats", "xplane.pb",
)  # fmt: skip
_MAX_EVENTS = 1_000_000
_LEAST_DEADLINE_S = 60.0
_MOST_MS = 7 * 24 * 3600 * 1000
_MOST_LATER = 3600


@dataclass(frozen=True)
class CaptureRequest:
    """One session to be recorded.

    ``duration_ms`` is how long, ``delay_ms`` how long to wait before. ``attempts`` counts the
    first one. ``timeout_ms`` is how long an answer may take, all attempts together; by default
    `capture_deadline_s`. ``duration_ms`` and the delay stand above what ``options`` say.
    """

    targets: tuple[Target, ...]
    session_id: str
    duration_ms: int
    options: schema.ProfileOptions
    attempts: int = 3
    delay_ms: int = 0
    timeout_ms: int | None = None

    @property
    def timeout_s(self) -> float:
        """How long an answer may take, in seconds."""
        if self.timeout_ms is not None:
            return self.timeout_ms / 1000
        return capture_deadline_s(self.duration_ms, self.delay_ms)


def capture_deadline_s(duration_ms: int, delay_ms: int) -> float:
    """How long upstream's client waits for a host, all attempts together: twice the duration, at
    least a minute, and the delay (xla/tsl/profiler/rpc/client/remote_profiler_session_manager.cc).
    """
    return max(_LEAST_DEADLINE_S, 2 * duration_ms / 1000) + delay_ms / 1000


def default_session_ids() -> Iterator[str]:
    """Names for a session, the best first: the local time to the second, as upstream names them.

    Then the seconds after it: a clock may go back, and a second may see two sessions.
    """
    now = time.time()
    for later in range(_MOST_LATER):
        yield time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now + later))


def default_session_id(repository: Repository) -> str:
    """The first of `default_session_ids` that ``repository`` has nothing under.

    Raises ExistsError where it has something under all of them.
    """
    for name in default_session_ids():
        if repository.is_free(name):
            return name
    raise ExistsError("no session id is free near the present time; name one")


def check_request(request: CaptureRequest) -> None:
    """Raise UsageError for a request that cannot work: no host, one twice, or odd numbers."""
    if not request.targets:
        raise UsageError("no host to profile; name HOST:PORT")
    names = [host_file_name(target.host) for target in request.targets]
    addresses = [target.address.lower() for target in request.targets]
    for what, found in (("host name", names), ("address", addresses)):
        twice = next((name for name in found if found.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"{what} {twice!r} is given twice; each host needs its own")
    for what, number, least in (
        ("duration", request.duration_ms, 1),
        ("delay", request.delay_ms, 0),
        ("timeout", 1 if request.timeout_ms is None else request.timeout_ms, 1),
    ):
        if not least <= number <= _MOST_MS:
            raise UsageError(f"a {what} of {number} ms; from {least} ms to a week is possible")
    if request.attempts < 1:
        raise UsageError(f"{request.attempts} attempts; at least one is needed")


def start_timestamp_ns(delay_ms: int) -> int:
    """When hosts shall begin: nanoseconds since the epoch, 0 (at once) without a delay."""
    return time.time_ns() + delay_ms * 1_000_000 if delay_ms else 0


def profile_request(
    request: CaptureRequest, target: Target, *, logdir: str, root: str, start_ns: int
) -> schema.ProfileRequest:
    """The message for one host.

    ``emit_xspace`` wants the profile in the answer. A server that is too old to know it saves
    under ``root``, in a file named after the host, where it is found if the disk is shared.
    """
    options = type(request.options)()
    options.CopyFrom(request.options)
    options.duration_ms = request.duration_ms
    if start_ns:
        options.start_timestamp_ns = start_ns
    if not options.repository_path:
        options.repository_path = _absolute(logdir)
    if target.host != target.address:
        options.override_hostname = target.host
    return schema.ProfileRequest(
        duration_ms=request.duration_ms,
        max_events=_MAX_EVENTS,
        tools=_TOOLS,
        opts=options,
        repository_root=_absolute(root),
        session_id=request.session_id,
        host_name=target.host,
        emit_xspace=True,
    )


def _absolute(path: str) -> str:
    """A path that means the same in another process; a URL as it is."""
    return path if "://" in path else str(Path(path).absolute())
