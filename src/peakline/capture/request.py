"""What is requested of a profiler: where it listens, the options, and the message to every host.

The message is what the capture clients of TensorFlow and JAX send.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from peakline import schema
from peakline.errors import ExistsError, UsageError
from peakline.repository import Repository, host_file_name

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_ADVANCED = "advanced_configuration"
_CLOSE = 0.85


def default_options() -> schema.ProfileOptions:
    """The options that the capture clients of TensorFlow and JAX send."""
    return schema.ProfileOptions(
        version=1,
        host_tracer_level=2,
        device_tracer_level=1,
        enable_hlo_proto=True,
        include_dataset_ops=True,
    )


def profile_options(pairs: Mapping[str, str]) -> schema.ProfileOptions:
    """`default_options` changed by ``pairs``.

    A key is a field of ProfileOptions (an enum's value by name or number), a field of one of its
    messages with a dot (``trace_options.host_traceme_filter_mask``), or any other name: that goes
    into ``advanced_configuration``, where ``true`` and ``false`` are bool, whole numbers int64,
    the rest text (``"12"`` in quotes is text too). A name that looks like a misspelt field is
    refused; written ``advanced_configuration.NAME`` it passes. Raises UsageError for a value that
    does not fit.
    """
    options = default_options()
    for key, text in pairs.items():
        _set(options, key, text)
    return options


def _set(options: schema.ProfileOptions, key: str, text: str) -> None:
    first, _, rest = key.partition(".")
    fields = options.DESCRIPTOR.fields_by_name
    if first == _ADVANCED:
        if not rest:
            raise UsageError(f"{_ADVANCED}: name the entry, {_ADVANCED}.NAME=VALUE")
        _set_advanced(options, rest, text)
    elif first not in fields:
        close = get_close_matches(key, fields, 1, _CLOSE)
        if close:
            raise UsageError(
                f"no option {key!r}; {close[0]!r} is meant, or {_ADVANCED}.{key} for a device's own"
            )
        _set_advanced(options, key, text)
    elif (message := fields[first].message_type) is not None:
        if rest not in message.fields_by_name:
            known = ", ".join(f"{first}.{name}" for name in message.fields_by_name)
            raise UsageError(f"no option {key!r}; there is: {known}")
        _assign(getattr(options, first), message.fields_by_name[rest], key, text)
    elif rest:
        raise UsageError(f"option {first!r} has no parts; write {first}=VALUE")
    else:
        _assign(options, fields[first], key, text)


def _assign(message: Any, field: Any, key: str, text: str) -> None:
    try:
        setattr(message, field.name, _value(field, text))
    except (ValueError, TypeError):
        raise UsageError(f"option {key}={text!r}: {_wanted(field)} is wanted") from None


def _value(field: Any, text: str) -> bool | int | str:
    """``text`` as a value of ``field``; ValueError when it is none."""
    if field.type == field.TYPE_BOOL:
        word = text.lower()
        if word not in _TRUE | _FALSE:
            raise ValueError(text)
        return word in _TRUE
    if field.enum_type is not None:
        named = field.enum_type.values_by_name.get(text.upper())
        number = int(text) if named is None else named.number
        if number not in field.enum_type.values_by_number:
            raise ValueError(text)
        return number
    if field.type == field.TYPE_STRING:
        return text
    return int(text, 0)


def _wanted(field: Any) -> str:
    if field.type == field.TYPE_BOOL:
        return "true or false"
    if field.enum_type is not None:
        return "one of " + ", ".join(field.enum_type.values_by_name)
    if field.type == field.TYPE_STRING:
        return "text in valid Unicode"
    return f"a whole number from 0 to {2**64 - 1 if field.type == field.TYPE_UINT64 else 2**32 - 1}"


def _set_advanced(options: schema.ProfileOptions, key: str, text: str) -> None:
    try:
        entry = options.advanced_configuration[key]
        if text in {"true", "false"}:
            entry.bool_value = text == "true"
        elif text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal():
            entry.int64_value = int(text)
        elif len(text) > 1 and text[0] == text[-1] == '"':
            entry.string_value = text[1:-1]
        else:
            entry.string_value = text
    except (ValueError, TypeError):
        raise UsageError(
            f"option {key}={text!r}: a number of 64 bits or text in Unicode is wanted"
        ) from None


_SCHEME = "grpc://"
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?")
_MOST_NAME = 253
_MOST_PORT = 65535
_SHOWN = 100


@dataclass(frozen=True)
class Target:
    """One profiler: ``host`` is its name in the repository, ``address`` its ``host:port``."""

    host: str
    address: str


def parse_address(text: str) -> str:
    """``host:port`` of a profiler, without a leading ``grpc://``.

    There is exactly one colon, a numeric port and no slash, as the capture clients of TensorFlow
    and JAX want it; an IPv6 address stands in brackets, ``[::1]:9012``. Nothing passes that gRPC
    would take for another kind of address (``unix:...``, ``xds:...``). Raises UsageError.
    """
    address = text.strip().removeprefix(_SCHEME)
    host, _, port = address.rpartition(":")
    shown = ascii(text[:_SHOWN])
    if not port.isascii() or not port.isdecimal() or not 1 <= int(port[:9]) <= _MOST_PORT:
        raise UsageError(f"{shown} is no address; write HOST:PORT, as in localhost:9012")
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise UsageError(f"{shown}: what stands in brackets is no IPv6 address") from None
    elif not _NAME.fullmatch(host) or len(host) > _MOST_NAME:
        hint = (
            "an IPv6 address goes into brackets, [::1]:9012" if ":" in host else "write HOST:PORT"
        )
        raise UsageError(f"{shown}: no host name before the port; {hint}")
    return f"{host}:{int(port)}"


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
    for what, result in (("host name", names), ("address", addresses)):
        twice = next((name for name in result if result.count(name) > 1), None)
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
