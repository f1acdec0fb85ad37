"""What of a server's settings can be checked before anything is bound."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from peakline.capture import parse_address
from peakline.engine import check_executor
from peakline.errors import UsageError
from peakline.repository import check_name
from peakline.service.addresses import literal_address
from peakline.service.settings import LARGEST_MESSAGE, Settings

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
