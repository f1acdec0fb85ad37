"""What a server was told at its start, and what of it can be checked before anything is bound."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from peakline.engine import check_executor
from peakline.errors import UsageError
from peakline.service.addresses import literal_address

__all__ = [
    "Settings",
    "check_settings",
    "default_cache_bytes",
    "default_concurrency",
    "default_unpacked_bytes",
    "is_loopback",
    "parse_worker",
]

_CACHE_BYTES = 2 << 30
_UNPACKED_BYTES = 4 << 30
_SHARE_OF_MEMORY = 4  # the cache takes at most a quarter of the machine
_LARGEST_MESSAGE = 2**31 - 1  # an int32 in gRPC's channel arguments
_LARGEST_PORT = 65535


def default_concurrency() -> int:
    """How many requests are worked on at once: one for each usable core, at least four."""
    if hasattr(os, "sched_getaffinity"):
        return max(4, len(os.sched_getaffinity(0)))
    return max(4, os.cpu_count() or 1)


def default_cache_bytes() -> int:
    """2 GiB, or a quarter of what this process may use of the machine's memory where that is less.

    A limit of the control group (a container's, a system service's) counts as the machine's size.
    """
    limits = [_physical_bytes(), *_control_group_bytes()]
    known = [limit for limit in limits if limit > 0]
    return min([_CACHE_BYTES, *(limit // _SHARE_OF_MEMORY for limit in known)])


def default_unpacked_bytes() -> int:
    """4 GiB, or half of what this process may use of the machine's memory where that is less."""
    limits = [_physical_bytes(), *_control_group_bytes()]
    return min([_UNPACKED_BYTES, *(limit // 2 for limit in limits if limit > 0)])


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _control_group_bytes(
    mounted: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup"
) -> list[int]:
    """The memory limits of this process's control groups; empty where there are none."""
    found = []
    try:
        lines = Path(membership).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        _, controllers, place = [*line.split(":", 2), "", ""][:3]
        if not controllers:  # version 2: every group above limits as well
            base, name = Path(mounted), "memory.max"
        elif "memory" in controllers.split(","):
            base, name = Path(mounted) / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = base / place.strip("/")
        for level in (group, *group.parents):
            if level != base and base not in level.parents:
                break
            try:
                found.append(int((level / name).read_text(encoding="ascii")))
            except (OSError, ValueError):
                continue  # no such file at the top level, or "max"
    return found


@dataclass(frozen=True)
class Settings:
    """Everything that a server was told; sizes in bytes, times in seconds.

    ``roots`` are log directories or their URLs; ``linked`` are files elsewhere that links in them
    may lead to. A port of 0 is any free one, and without a ``grpc_port`` there is no gRPC face.
    ``workers`` maps a
    host's name to the ``ADDRESS:PORT`` of its profiler, ``allow_capture`` holds names, patterns
    and networks besides loopback and the workers. ``token`` is one that callers must show;
    ``token_file`` holds more of them, one a line. ``sql_memory_bytes`` is what one query may take,
    ``max_unpacked_bytes`` what one gzip file may expand to. ``executor``, ``hosts_at_once`` and
    ``scheduler`` say where the hosts of a session are read: see `peakline.engine.make_executor`.
    """

    roots: tuple[str, ...]
    linked: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    grpc_port: int | None = 50051
    http_port: int = 8080
    profiler_port: int = 8466
    workers: Mapping[str, str] = field(default_factory=dict)
    allow_capture: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    insecure: bool = False
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    max_message_bytes: int = _LARGEST_MESSAGE
    max_upload_bytes: int = 4 << 30
    max_unpacked_bytes: int = field(default_factory=default_unpacked_bytes)
    max_concurrent: int = field(default_factory=default_concurrency)
    max_queued: int = 64
    request_timeout_s: float = 300.0
    max_capture_s: float = 600.0
    grace_s: float = 10.0
    cache_bytes: int = field(default_factory=default_cache_bytes)
    executor: str = "threads"
    hosts_at_once: int | None = None
    scheduler: str | None = None
    sql_memory_bytes: int = 1 << 30
    read_only: bool = False
    access_log: str = "-"
    debug: bool = False

    @property
    def scheme(self) -> str:
        """``https`` where the server has a certificate, else ``http``."""
        return "http" if self.tls_cert is None else "https"


def parse_worker(text: str) -> tuple[str, str]:
    """``NAME=ADDRESS:PORT`` as its two halves; UsageError for anything else."""
    from peakline.capture import parse_address
    from peakline.repository import check_name

    name, equals, address = text.partition("=")
    if not equals:
        raise UsageError(f"--worker {text!r}: write NAME=ADDRESS:PORT")
    try:
        return check_name("host", name), parse_address(address)
    except UsageError as error:
        raise UsageError(f"--worker {text!r}: {error}") from None


def is_loopback(host: str) -> bool:
    """Whether everything that ``host`` stands for as an address to bind is this machine's own.

    Raises UsageError for a name that stands for nothing.
    """
    address = literal_address(host)
    if address is not None:
        return address.is_loopback
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: no address for that name ({error})") from None
    addresses = [literal_address(str(place[0])) for *_, place in found]
    return all(address is not None and address.is_loopback for address in addresses)


def check_settings(settings: Settings) -> None:
    """Raise UsageError, in one line, for what cannot work or must not be served."""
    _check_roots(settings.roots)
    _check_numbers(settings)
    check_executor(settings.executor, settings.hosts_at_once, settings.scheduler)
    _check_tls(settings)
    if settings.host == "":
        raise UsageError("--host is empty; 0.0.0.0 or :: is every address")
    guarded = settings.token is not None or settings.token_file is not None
    if not guarded and not settings.insecure and not is_loopback(settings.host):
        raise UsageError(
            f"--host {settings.host}: others could reach this server, and nothing guards it;"
            " give --token-file FILE, or --insecure to serve everybody"
        )


def _check_roots(roots: Sequence[str]) -> None:
    if not roots:
        raise UsageError("name at least one log directory to serve")
    for root in roots:
        if not root or "\x00" in root:
            raise UsageError(f"{root!r} is no log directory")
        if "://" in root:
            _check_driver(root)
        elif not Path(root).is_dir():
            what = "is no directory" if Path(root).exists() else "no such directory"
            raise UsageError(f"{root}: {what}; a log directory must be there before it is served")
        elif not os.access(root, os.R_OK | os.X_OK):
            raise UsageError(f"{root}: this user may not read it")


def _check_driver(root: str) -> None:
    """A URL is only as good as the driver for its file system."""
    import fsspec

    if "::" in root:
        raise UsageError(f"{root}: a chain of file systems is not served; name one")
    protocol = root.partition("://")[0].lower()
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        extra = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}.get(protocol)
        advice = f"pip install 'peakline[{extra}]'" if extra else str(error)
        raise UsageError(f"{root}: the driver is not installed: {advice}") from None
    except ValueError:
        raise UsageError(f"{root}: no file system is called {protocol!r}") from None


def _check_numbers(settings: Settings) -> None:
    for option, port in (
        ("--grpc-port", settings.grpc_port),
        ("--http-port", settings.http_port),
        ("--profiler-port", settings.profiler_port),
    ):
        lowest = 1 if option == "--profiler-port" else 0
        if port is not None and not lowest <= port <= _LARGEST_PORT:
            raise UsageError(f"{option} {port}: a port is between {lowest} and {_LARGEST_PORT}")
    if settings.grpc_port == settings.http_port != 0:
        raise UsageError(f"--grpc-port and --http-port are both {settings.grpc_port}")
    if not 1 <= settings.max_message_bytes <= _LARGEST_MESSAGE:
        raise UsageError(f"--max-message: between 1 and {_LARGEST_MESSAGE} bytes")
    for option, number, least in (
        ("--max-upload", settings.max_upload_bytes, 1),
        ("--max-unpacked", settings.max_unpacked_bytes, 1),
        ("--max-concurrent", settings.max_concurrent, 1),
        ("--max-queued", settings.max_queued, 0),
        ("--cache", settings.cache_bytes, 0),
        ("--sql-memory", settings.sql_memory_bytes, 1 << 20),
    ):
        if number < least:
            raise UsageError(f"{option} {number}: at least {least}")
    for option, seconds in (
        ("--request-timeout", settings.request_timeout_s),
        ("--max-capture", settings.max_capture_s),
    ):
        if not 0 < seconds < float("inf"):
            raise UsageError(f"{option} {seconds:g}: a number of seconds above 0")
    if not 0 <= settings.grace_s < float("inf"):
        raise UsageError(f"--grace {settings.grace_s:g}: a number of seconds, at least 0")


def _check_tls(settings: Settings) -> None:
    """The certificate, its key and the clients' authority are there and fit each other."""
    import ssl

    certificate, key, authority = settings.tls_cert, settings.tls_key, settings.tls_client_ca
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    if certificate is None or key is None:
        if authority is not None:
            raise UsageError("--tls-client-ca needs --tls-cert and --tls-key")
        return
    for option, path in (
        ("--tls-cert", certificate),
        ("--tls-key", key),
        ("--tls-client-ca", authority),
    ):
        if path is not None:
            _check_readable(option, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A key under a pass phrase would ask the terminal for it.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UsageError(
            f"--tls-cert {certificate} and --tls-key {key} cannot be used together: {reason}"
        ) from None
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise UsageError(f"--tls-client-ca {authority}: no certificate: {reason}") from None


def _check_readable(option: str, path: str) -> None:
    try:
        Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option} {path}: cannot be read: {reason}") from None
