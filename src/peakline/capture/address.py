"""Where a profiler listens: ``host:port``, and the name its profile is stored under."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from peakline.errors import UsageError

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
