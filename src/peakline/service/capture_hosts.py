"""Which hosts a capture may reach, and at which address.

Decided by what the request says, never by what a name resolves to: whoever controls a name's
records could otherwise point it at the inside of the network.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network

from peakline.capture import Target
from peakline.errors import ForbiddenError, UsageError
from peakline.service.addresses import host_of, join_port, literal_address, plain_host
from peakline.service.settings import Settings

_PATTERN = re.compile(r"[a-z0-9_.*?:-]+")
_ADDRESS_PATTERN = re.compile(r"(?=.*\d)[\d.*?]+")
_EVERYTHING = "*"
SCHEME = "grpc://"


class CaptureHosts:
    """The hosts that captures may reach: loopback, the workers' names, and what is allowed besides.

    Raises UsageError for an ``allow_capture`` that is no name, pattern, address or network.
    """

    def __init__(self, settings: Settings) -> None:
        self._port = settings.profiler_port
        self._workers = {
            _worker_key(name): (name, address) for name, address in settings.workers.items()
        }
        self._networks: list[IPv4Network | IPv6Network] = []
        self._names: list[re.Pattern[str]] = []
        self._addresses: list[re.Pattern[str]] = []
        self._all = False
        for pattern in settings.allow_capture:
            self._allow(pattern)

    def target(self, host: str) -> Target:
        """Where the profiler of ``host`` listens; a port in it is ignored, as the proto says.

        Raises UsageError for what is no host, ForbiddenError for one that is not allowed.
        """
        text = host.removeprefix(SCHEME)
        worker = self._workers.get(_worker_key(text))
        if worker is None:
            name, _ = host_of(text)
            worker = self._workers.get(name)
        if worker is not None:
            return Target(host=worker[0], address=worker[1])
        if not self._allowed(name):
            raise ForbiddenError(
                f"captures from {name} are not allowed here;"
                f" the server's --allow-capture {name} would allow them"
            )
        return Target(host=name, address=join_port(name, self._port))

    def _allowed(self, name: str) -> bool:
        address = literal_address(name)
        if address is None:
            patterns = self._names
            known = name == "localhost"
        else:
            patterns = self._addresses
            known = address.is_loopback or any(address in network for network in self._networks)
        return known or self._all or any(pattern.fullmatch(name) for pattern in patterns)

    def _allow(self, text: str) -> None:
        pattern = text.lower()
        if pattern == _EVERYTHING:
            self._all = True
        elif "/" in pattern or literal_address(pattern.strip("[]")) is not None:
            self._networks.append(_network(text))
        elif "*" not in pattern and "?" not in pattern:
            self._names.append(re.compile(re.escape(_named(text))))
        elif _PATTERN.fullmatch(pattern) is None:
            raise UsageError(f"--allow-capture {text!r}: is no host name, pattern or network")
        elif _ADDRESS_PATTERN.fullmatch(pattern):
            # Of addresses only: 10.* must not allow the name 10.example.com.
            self._addresses.append(_translated(pattern))
        else:
            self._names.append(_translated(pattern))


def _worker_key(name: str) -> str:
    return name.lower().removesuffix(".")


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        if "/" in text:
            return ip_network(text)
        return ip_network(str(literal_address(text.strip("[]"))))
    except ValueError as error:
        raise UsageError(f"--allow-capture {text!r}: {error}") from None


def _named(text: str) -> str:
    try:
        return plain_host(text)
    except UsageError:
        raise UsageError(
            f"--allow-capture {text!r}: is no host name, pattern or network (no port, no scheme)"
        ) from None


def _translated(pattern: str) -> re.Pattern[str]:
    """``*`` and ``?`` stay within one label, as in certificates; ``**`` crosses dots."""
    parts = re.split(r"(\*\*+|\*|\?)", pattern.removesuffix("."))
    spelled = {"*": "[^.]*", "?": "[^.]"}
    return re.compile(
        "".join(
            ".*" if part.startswith("**") else spelled.get(part, re.escape(part)) for part in parts
        )
    )
