"""Names of sessions, hosts and files: what a name may hold, and which files are profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from peakline.errors import UsageError

_Named = TypeVar("_Named", bound=tuple[Any, ...])

XPLANE_SUFFIX = ".xplane.pb"
"""What TensorFlow, JAX and PyTorch/XLA write: an XSpace message."""

RECORDING_SUFFIXES = (".pt.trace.json", ".pt.trace.json.gz")
"""What ``torch.profiler.tensorboard_trace_handler`` writes, and Lightning with it:
``WORKER.TIME.pt.trace.json``, one for each worker and each cycle of the schedule.
"""

SUFFIXES = (XPLANE_SUFFIX, f"{XPLANE_SUFFIX}.gz", ".profile", *RECORDING_SUFFIXES)
"""The files of a session that are a host's profile, the one that counts first: an XSpace, the same
compressed, any other format (an uploaded RunMetadata, a log ...), recognised by its content, and
PyTorch's recordings.
"""

TIMESTAMP = re.compile(r"\d{4}(_\d{2}){5}")
"""The session ids that the runtimes make up: ``2026_11_20_17_02_06``, local time."""

PACKAGES = frozenset(("__pycache__", "dist-packages", "node_modules", "site-packages"))
"""Directories of installed packages, in which nobody's runs are looked for."""

ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""What a directory holds that is a virtual environment of Python (PEP 405) or of conda."""

_MOST_BYTES = 200
INVISIBLE = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f"
)
"""Unicode's control characters, line separators and format characters (categories Cc, Zl, Zp, Cf),
to stand in a regular expression's brackets, here or in a JSON schema's pattern.
"""

_TIMED = re.compile(r"(.+)\.[0-9]+", re.DOTALL)
"""A recording's name: its worker, and when it was written (ns since 1970)."""

_CLOCK_TIME = re.compile(r"(.+)\.[0-9]{13,}", re.DOTALL)
"""The same of a host that may have any name: no part of an IP address is that long."""

_REFUSED = re.compile(rf"[/\\{INVISIBLE}\ud800-\udfff]")
_SHOWN = 60
_LISTED = 20


def check_name(kind: str, name: str) -> str:
    r"""``name``, if it can name a ``kind`` ("session", "host", ...) and nothing else.

    A name is one part of a path and can be written in JSON, in a URL and on a screen: not empty,
    without a dot or a dash at its beginning, without ``/``, ``\``, control characters, invisible
    format characters (those that turn the direction of text are some), line separators or half
    surrogate pairs, at most 200 bytes of UTF-8. Raises UsageError for any other.
    """
    why = _complaint(name)
    if why:
        # Half surrogate pairs, which no stream can write, as escapes.
        shown = repr(name[:_SHOWN]).encode(errors="backslashreplace").decode()
        more = "..." if len(name) > _SHOWN else ""
        raise UsageError(f"{shown}{more} is no {kind}: {why}").quoting(shown)
    return name


def check_run_name(name: str) -> list[str]:
    """The parts of a run's name, ``train/ID`` or ``ID``, each of which is a name."""
    return [check_name("session", part) for part in name.split("/")]


def is_name(name: str) -> bool:
    """Whether `check_name` lets ``name`` pass."""
    return not _complaint(name)


def _complaint(name: str) -> str:
    if not name:
        return "it is empty"
    if name[0] == ".":
        return "it begins with a dot"
    if name[0] == "-":
        return "it begins with a dash"
    if _REFUSED.search(name):
        return "it holds a character that a name may not hold"
    # No character takes more than four bytes.
    if len(name) * 4 > _MOST_BYTES and len(name.encode()) > _MOST_BYTES:
        return f"it is longer than {_MOST_BYTES} bytes"
    return ""


def host_file_name(host: str) -> str:
    """The name that ``host``'s file has without its suffix."""
    return host.replace(":", "_")


@lru_cache(maxsize=4096)
def host_of(file_name: str) -> tuple[str, int] | None:
    """The host that a session's file is the profile of, and the rank of its suffix.

    Of a recording the host is its worker, as long as the session has no other of that worker
    (`recording_of`).
    None for files that are no profile: other programs' caches, old tool files, hidden files.
    Hosts have the same names in most sessions, so the last answers are remembered.
    """
    for rank, suffix in enumerate(SUFFIXES):
        if file_name.endswith(suffix):
            host = file_name[: -len(suffix)]
            timed = _TIMED.fullmatch(host) if suffix in RECORDING_SUFFIXES else None
            return (timed[1] if timed else host, rank) if is_name(host) else None
    return None


def recording_of(file_name: str) -> str | None:
    """``WORKER.TIME`` of a recording of PyTorch, None for every other file.

    It is what the host is called where a session has several recordings of one worker.
    """
    for suffix in RECORDING_SUFFIXES:
        if file_name.endswith(suffix):
            name = file_name[: -len(suffix)]
            return name if is_name(name) else None
    return None


def newest_of_workers(hosts: Sequence[_Named]) -> list[_Named]:
    """Of each worker that has several recordings, which are called ``WORKER.TIME``, the newest.

    ``hosts`` are tuples that begin with their names: all others stay, in their order.
    """
    newest: dict[str, str] = {}
    for name in (one[0] for one in hosts):
        worker = _worker_of(name)
        newest[worker] = max(name, newest.get(worker, name))
    return [one for one in hosts if newest[_worker_of(one[0])] == one[0]]


def _worker_of(host: str) -> str:
    timed = _CLOCK_TIME.fullmatch(host)
    return timed[1] if timed else host


def listing(names: list[str]) -> str:
    """Names for a message, the first twenty of them."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
