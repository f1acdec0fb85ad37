"""Who a request comes from: callers share what the server has, each with a part of its own."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from urllib.parse import unquote

from peakline.engine.gate import Caller
from peakline.service.access import Access
from peakline.service.addresses import literal_address
from peakline.service.tokens import shown_token

_NETWORK_BITS = 64
"""One machine has a whole network of IPv6 addresses (RFC 4291, section 2.5.1)."""


def peer_of(address: str) -> str:
    """What counts as one peer: an IPv4 address, or the network of an IPv6 one."""
    result = literal_address(address.partition("%")[0])
    if isinstance(result, IPv6Address):
        return str(IPv6Network((result, _NETWORK_BITS), strict=False))
    return address if result is None else str(result)


def caller_of(access: Access, authorization: str | None, address: str) -> Caller:
    """The caller of a request that was let in: its token, where there are tokens, and its peer."""
    return (shown_token(authorization) if access.guarded else "", peer_of(address))


def grpc_address(peer: str) -> str:
    """The address in what gRPC calls a peer, such as ``ipv4:10.0.0.7:4711``."""
    _, _, place = unquote(peer).partition(":")
    return place.rpartition(":")[0].strip("[]")
