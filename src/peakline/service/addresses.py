"""Hosts and ports as requests and options spell them, in one normal form or refused.

An address has many spellings (``0x7f000001``, ``127.1``, ``::ffff:127.0.0.1``) and resolvers take
more of them than any rule foresees. Here an address is what `ipaddress` calls one, a name is what
cannot be taken for one, and everything else is refused.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from peakline.errors import UsageError

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,5}")
_LONGEST_NAME = 253
_SHOWN = 80


def literal_address(text: str) -> IPv4Address | IPv6Address | None:
    """``text`` as an address, or None when it is a name; brackets are not part of an address.

    An IPv4 address inside an IPv6 one is the IPv4 address. A zone (``%eth0``) makes no address.
    """
    if "%" in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def split_port(text: str) -> tuple[str, int | None]:
    """``host``, ``host:port``, ``[v6]`` or ``[v6]:port`` as the host's text and the port.

    A bare IPv6 address has no port. Raises UsageError for a port that is none.
    """
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise _none(text, ": the brackets do not fit")
        address = literal_address(host)
        if not isinstance(address, IPv6Address) and ":" not in host:
            raise _none(text, ": brackets are for IPv6 addresses")
        port = rest[1:] if rest else None
    elif text.count(":") > 1:
        host, port = text, None
    else:
        host, colon, rest = text.partition(":")
        port = rest if colon else None
    if port is None:
        return host, None
    if _PORT.fullmatch(port) is None or int(port) > 65535:
        raise _none(text, f": {port[:_SHOWN]!r} is no port", port)
    return host, int(port)


def plain_host(text: str) -> str:
    """The host ``text`` (without port and brackets) in its normal form.

    An address is written as `ipaddress` writes it; a name in lower case without the final dot.
    Raises UsageError for what is neither, such as ``127.1``, which a resolver would take for an
    address, and for names outside ASCII, which look like other names.
    """
    address = literal_address(text)
    if address is not None:
        return str(address)
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or any(_LABEL.fullmatch(label) is None for label in labels):
        raise _none(text, " name")
    if _NUMBER.fullmatch(labels[-1]):
        raise _none(text, " name; write an address in full")
    return name


def host_of(text: str) -> tuple[str, int | None]:
    """``host[:port]`` as its normal form and its port. Raises UsageError."""
    host, port = split_port(text)
    return plain_host(host), port


def _none(text: str, why: str, *parts: str) -> UsageError:
    """The error for a ``text`` that is no host, and for those of its parts that ``why`` repeats."""
    quotes = [repr(part[:_SHOWN]) for part in (text, *parts)]
    return UsageError(f"{quotes[0]} is no host{why}").quoting(*quotes)


def join_port(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
