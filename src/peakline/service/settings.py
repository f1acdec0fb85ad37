"""What a server can be given at its start: each setting once, with its default and its help.

What of them can be checked before anything is bound is checked here.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from peakline.capture import parse_address
from peakline.engine import check_executor
from peakline.errors import UsageError
from peakline.repository import check_name
from peakline.service.addresses import literal_address
from peakline.text import parse_duration, parse_size

LARGEST_MESSAGE = 2**31 - 1
"""The most bytes of a message: an int32 in gRPC's channel arguments."""


def default_concurrency() -> int:
    """How many requests are worked on at once: one for each usable core, at least four."""
    if hasattr(os, "sched_getaffinity"):
        return max(4, len(os.sched_getaffinity(0)))
    return max(4, os.cpu_count() or 1)


def default_cache_bytes() -> int:
    """2 GiB, or a quarter of what this process may use of the machine's memory where that is less.

    A limit of the control group (a container's, a system service's) counts as the machine's size.
    """
    return _at_most_a_part(2 << 30, 4)


def default_unpacked_bytes() -> int:
    """4 GiB, or half of what this process may use of the machine's memory where that is less."""
    return _at_most_a_part(4 << 30, 2)


def _at_most_a_part(size: int, part: int) -> int:
    """``size`` bytes, or one ``part``-th of the memory where that is less."""
    limits = [_physical_bytes(), *_control_group_bytes()]
    return min([size, *(limit // part for limit in limits if limit > 0)])


def _physical_bytes() -> int:
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0


def _control_group_bytes(
    mounted: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup"
) -> list[int]:
    """The memory limits of this process's control groups; empty where there are none."""
    from pathlib import Path

    result = []
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
                result.append(int((level / name).read_text(encoding="ascii")))
            except (OSError, ValueError):
                continue  # no such file at the top level, or "max"
    return result


def _option(flag: str, value: object, help: str, least: int | None = None, **option: object) -> Any:  # noqa: A002
    """A setting that ``flag`` of ``peakline serve`` gives.

    ``value`` is its default, or a function that finds it, which the help says in words.
    ``option`` holds keywords of `click.option`; ``least`` is the smallest number allowed.
    """
    if callable(value):
        metadata = {"flag": flag, "least": least, "option": {"help": help, **option}}
        return field(default_factory=value, metadata=metadata)
    option = {"help": help, "default": value, **option}
    return field(default=value, metadata={"flag": flag, "least": least, "option": option})


def _gibibytes(flag: str, size: int, help: str, least: int) -> Any:  # noqa: A002
    return _option(
        flag, size << 30, help, least, metavar="SIZE", type=parse_size, default=f"{size}GiB"
    )


def _seconds(flag: str, time: int, help: str) -> Any:  # noqa: A002
    return _option(flag, float(time), help, metavar="TIME", type=_parse_s, default=f"{time}s")


def _several(flag: str, metavar: str, help: str) -> Any:  # noqa: A002
    return _option(flag, (), help, metavar=metavar, multiple=True, default=None)


def _switch(flag: str, help: str) -> Any:  # noqa: A002
    return _option(flag, value=False, help=help, is_flag=True)


def _parse_s(text: str) -> float:
    return parse_duration(text) / 1000


@dataclass(frozen=True)
class Settings:
    """Everything that a server is given; sizes in bytes, times in seconds.

    ``roots`` are log directories or their URLs; ``linked`` are files elsewhere that links in them
    may lead to. ``source`` is the path that shows the same in a command, where every caller may
    know it. Without a ``grpc_port`` there is no gRPC face. ``workers`` maps a host's name to
    the ``ADDRESS:PORT`` of its profiler. ``token`` is one that callers must show, besides those
    of ``token_file``. ``executor``, ``hosts_at_once`` and ``scheduler`` say where the hosts of a
    session are read: see `peakline.engine.make_executor`. The others are options of
    ``peakline serve``, in the order of its help.
    """

    roots: tuple[str, ...]
    linked: tuple[str, ...] = ()
    source: str | None = None
    token: str | None = field(default=None, repr=False)
    debug: bool = False
    host: str = _option(
        "--host",
        "127.0.0.1",
        "The address to listen on. Any but this machine's own needs --token-file or --insecure.",
        metavar="ADDRESS",
    )
    grpc_port: int | None = _option(
        "--grpc-port", 50051, "The gRPC port; 0: any free one.", metavar="PORT"
    )
    http_port: int = _option("--http-port", 8080, "The HTTP port; 0: any free one.", metavar="PORT")
    profiler_port: int = _option(
        "--profiler-port",
        8466,
        "Where the profilers of running jobs listen, on every host.",
        metavar="PORT",
    )
    workers: Mapping[str, str] = _option(
        "--worker",
        dict,
        "A host's name and where its profiler listens; repeat for more.",
        metavar="NAME=ADDRESS:PORT",
        multiple=True,
    )
    allow_capture: tuple[str, ...] = _several(
        "--allow-capture",
        "PATTERN",
        "Hosts that captures may reach besides this machine and the workers: a name,"
        " *.example.com, an address, 10.0.0.0/8; repeat for more.",
    )
    token_file: str | None = _option(
        "--token-file", None, "Tokens that callers must show, one a line.", metavar="FILE"
    )
    tls_cert: str | None = _option(
        "--tls-cert", None, "The server's certificate chain (PEM): TLS on both.", metavar="FILE"
    )
    tls_key: str | None = _option(
        "--tls-key", None, "The certificate's private key (PEM).", metavar="FILE"
    )
    tls_client_ca: str | None = _option(
        "--tls-client-ca",
        None,
        "Only clients with a certificate of this authority (PEM).",
        metavar="FILE",
    )
    allowed_origins: tuple[str, ...] = _several(
        "--allow-origin",
        "ORIGIN",
        "A site, https://host[:port], whose pages may ask and change; repeat for more.",
    )
    allowed_hosts: tuple[str, ...] = _several(
        "--allow-host",
        "NAME",
        "A further name of this server in HTTP's Host header; repeat for more.",
    )
    max_message_bytes: int = _option(
        "--max-message",
        LARGEST_MESSAGE,
        f"The largest gRPC message. Default: {LARGEST_MESSAGE} bytes, gRPC's own limit.",
        metavar="SIZE",
        type=parse_size,
        default=str(LARGEST_MESSAGE),
        show_default=False,
    )
    max_upload_bytes: int = _gibibytes(
        "--max-upload", 4, "The largest file that may be uploaded.", least=1
    )
    max_unpacked_bytes: int = _option(
        "--max-unpacked",
        default_unpacked_bytes,
        "What a gzip file may expand to. Default: 4 GiB, at most half of the memory.",
        least=1,
        metavar="SIZE",
        type=parse_size,
    )
    max_concurrent: int = _option(
        "--max-concurrent",
        default_concurrency,
        "Requests that are worked on at once. Default: one for each core, at least 4.",
        least=1,
        metavar="N",
        type=int,
    )
    max_queued: int = _option(
        "--max-queued",
        512,
        "Requests that may wait; more are refused as busy.",
        least=0,
        metavar="N",
    )
    max_connections: int = _option(
        "--max-connections",
        4096,
        "Connections to each port; beyond, whoever does nothing gives way.",
        least=1,
        metavar="N",
    )
    max_connections_per_peer: int = _option(
        "--max-connections-per-peer",
        1024,
        "Connections to each port from one address; at most three quarters of all.",
        least=1,
        metavar="N",
    )
    head_timeout_s: float = _seconds(
        "--head-timeout", 15, "How long a connection may take until it has sent a request."
    )
    idle_timeout_s: float = _seconds(
        "--idle-timeout",
        30,
        "How long a client may send nothing more of a request, or read nothing of its answer.",
    )
    request_timeout_s: float = _seconds(
        "--request-timeout",
        300,
        "How long one answer may take, where the caller sets no nearer deadline.",
    )
    max_capture_s: float = _seconds("--max-capture", 600, "How long one capture may take.")
    grace_s: float = _seconds(
        "--grace", 10, "How long running requests may go on after the server was stopped."
    )
    cache_bytes: int = _option(
        "--cache",
        default_cache_bytes,
        "Memory for decoded profiles. Default: 2GiB, at most a quarter of the machine's.",
        least=0,
        metavar="SIZE",
        type=parse_size,
    )
    sql_memory_bytes: int = _gibibytes(
        "--sql-memory", 1, "Memory that one SQL query may take.", least=1 << 20
    )
    sql_answer_bytes: int = _option(
        "--sql-answer",
        128 << 20,
        "How large the answer to one SQL query may be.",
        least=1,
        metavar="SIZE",
        type=parse_size,
        default="128MiB",
    )
    executor: str = "threads"
    hosts_at_once: int | None = None
    scheduler: str | None = None
    access_log: str = _option(
        "--access-log",
        "-",
        "A JSON line for every request; - is standard error, off is none.",
        metavar="FILE",
    )
    insecure: bool = _switch("--insecure", "Serve everybody who reaches the ports.")
    read_only: bool = _switch("--read-only", "Refuse captures and uploads.")

    @property
    def scheme(self) -> str:
        """``https`` where the server has a certificate, else ``http``."""
        return "http" if self.tls_cert is None else "https"


_LARGEST_PORT = 65535


def parse_worker(text: str) -> tuple[str, str]:
    """``NAME=ADDRESS:PORT`` as its two halves; UsageError for anything else."""
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
    addresses = [literal_address(str(place[0])) for *_, place in resolved(host, None)]
    return all(address is not None and address.is_loopback for address in addresses)


def resolved(host: str, port: int | None) -> list[Any]:
    """What ``host`` stands for as an address to bind, as `socket.getaddrinfo` has it; UsageError
    for a name that stands for nothing.
    """
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: no address for that name ({error})") from None


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
            exists = Path(root).exists()
            what = "is no directory (peakline view opens a file)" if exists else "no such directory"
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
    if not 1 <= settings.max_message_bytes <= LARGEST_MESSAGE:
        raise UsageError(f"--max-message: between 1 and {LARGEST_MESSAGE} bytes")
    for setting in fields(settings):
        least = setting.metadata.get("least")
        if least is not None and getattr(settings, setting.name) < least:
            number = getattr(settings, setting.name)
            raise UsageError(f"{setting.metadata['flag']} {number}: at least {least}")
    for option, seconds in (
        ("--request-timeout", settings.request_timeout_s),
        ("--max-capture", settings.max_capture_s),
        ("--head-timeout", settings.head_timeout_s),
        ("--idle-timeout", settings.idle_timeout_s),
    ):
        if not 0 < seconds < float("inf"):
            raise UsageError(f"{option} {seconds:g}: a number of seconds above 0")
    if not 0 <= settings.grace_s < float("inf"):
        raise UsageError(f"--grace {settings.grace_s:g}: a number of seconds, at least 0")


def _check_tls(settings: Settings) -> None:
    """The certificate, its key and the clients' authority are there and fit each other."""
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
            read_file(option, path)
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


def read_file(option: str, path: str) -> bytes:
    """The content of the file that ``option`` names; UsageError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option} {path}: cannot be read: {reason}") from None
