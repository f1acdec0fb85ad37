"""Opening files below a directory and nowhere else, whatever happens to links meanwhile.

A path is resolved, and then walked from the descriptor of the directory without following any
link: by the kernel (openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, Linux 5.6), elsewhere
part by part with O_NOFOLLOW. A link that is put in place meanwhile leads nowhere.
"""

# What has a descriptor is no Path.
# ruff: noqa: PTH103

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from peakline.errors import ForbiddenError

_ATTEMPTS = 8
"""Somebody may change links all the time while a path is resolved."""
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_PLACE = getattr(os, "O_PATH", os.O_RDONLY)
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd

_OPENAT2 = 437
"""The system call's number on every architecture but Alpha (asm-generic/unistd.h)."""
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
"""RESOLVE_* of linux/openat2.h."""
_NO_SUCH_CALL = {errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG}
"""What it says where there is none: an old kernel, or one that forbids it to a container."""
_MOVED = {errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.EAGAIN, errno.EMLINK}
"""What it says of a link where a moment before was none."""


@dataclass(frozen=True)
class Confinement:
    """The ``places``, directories or single files, in or at which alone something may be opened.

    Their own links are followed, anew each time: an operator may re-point them. Picklable; holds
    nothing open.
    """

    places: tuple[str, ...]

    def open(self, path: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of the file or directory ``path``. It is there, or OSError says why not.

        Links are followed where they lead to something inside. Raises ForbiddenError for what is
        outside, ValueError for what is no path.
        """
        roots = [os.path.realpath(place).rstrip("/") for place in self.places]
        if not _HAS_DESCRIPTORS:
            root, below = _inside(os.path.realpath(path), roots)
            return os.open(f"{root}/{below}" if below else root, flags)
        reason = OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        resolved = path
        for _ in range(_ATTEMPTS):
            try:
                # As it stands first: few paths have links.
                return _open_below(*_inside(resolved, roots), flags)
            except ForbiddenError:
                if resolved is not path:
                    raise
            except OSError as error:
                if error.errno not in _MOVED:
                    raise
                reason = error
            resolved = os.path.realpath(path)
        if reason.errno == errno.ENOTDIR:
            raise reason
        raise _outside()

    def open_file(self, path: str) -> int:
        """A descriptor to read the file ``path`` by, as an `Opener`; does not wait for a pipe."""
        return self.open(path, os.O_RDONLY | _NONBLOCK)

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """The directory ``path``, open for the block."""
        descriptor = self.open(path, os.O_RDONLY | _DIRECTORY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def make_directories(self, path: str) -> None:
        """Make the directory ``path`` and those above it that are not there, as `os.makedirs`."""
        if not _HAS_DESCRIPTORS:
            os.makedirs(path, exist_ok=True)
            return
        try:
            os.close(self.open(path, _PLACE | _DIRECTORY))
        except FileNotFoundError:
            parent, name = os.path.split(path.rstrip("/"))
            self.make_directories(parent)
            with self.directory(parent) as descriptor:
                try:
                    os.mkdir(name, dir_fd=descriptor)
                except FileExistsError:
                    # Somebody else was faster, or it is a link that leads nowhere.
                    os.close(self.open(path, _PLACE | _DIRECTORY))

    def status(self, path: str) -> os.stat_result:
        """As `os.stat`."""
        descriptor = self.open(path, _PLACE if _PLACE != os.O_RDONLY else os.O_RDONLY | _NONBLOCK)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)


def _inside(path: str, roots: list[str]) -> tuple[str, str]:
    """The one of ``roots`` that ``path`` is or lies below, and what it is called there."""
    for root in roots:
        if path == root or path == root + "/":
            return root, ""
        below = path[len(root) + 1 :]
        if path.startswith(f"{root}/") and not {"", ".", ".."} & set(below.split("/")):
            return root, below
    raise _outside()


def _outside() -> ForbiddenError:
    return ForbiddenError("a link leads out of the served log directories")


def _open_below(root: str, below: str, flags: int) -> int:
    """Open ``root``/``below``, of which no part but perhaps of the root is a link."""
    flags |= _CLOEXEC
    if not below:
        return os.open(root or "/", flags | _NOFOLLOW)
    place = os.open(root or "/", _PLACE | _DIRECTORY | _CLOEXEC)
    try:
        open_in = _by_kernel if _has_openat2() else _by_parts
        return open_in(place, below, flags)
    finally:
        os.close(place)


def _by_parts(place: int, below: str, flags: int) -> int:
    """Open ``below`` from the directory ``place`` on, a part at a time."""
    *parents, name = below.split("/")
    opened: list[int] = []
    try:
        for parent in parents:
            place = os.open(parent, _PLACE | _DIRECTORY | _NOFOLLOW | _CLOEXEC, dir_fd=place)
            opened.append(place)
        result = os.open(name, flags | _NOFOLLOW, dir_fd=place)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if stat.S_ISLNK(os.fstat(result).st_mode):
        # O_PATH with O_NOFOLLOW opens the link itself.
        os.close(result)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return result


class _How(ctypes.Structure):
    """``struct open_how``."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _by_kernel(place: int, below: str, flags: int) -> int:
    """As `_by_parts`, in one call."""
    how = _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    result = _libc().syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(place),
        ctypes.c_char_p(os.fsencode(below)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), below)
    return int(result)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _has_openat2() -> bool:
    if sys.platform != "linux":
        return False
    place = os.open("/", _PLACE | _DIRECTORY | _CLOEXEC)
    try:
        os.close(_by_kernel(place, ".", _PLACE | _DIRECTORY | _CLOEXEC))
    except OSError as error:
        if error.errno in _NO_SUCH_CALL:
            return False
        raise
    finally:
        os.close(place)
    return True
