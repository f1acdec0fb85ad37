"""What old profilers leave behind: files on a disk they share with us, and files for single tools.

A server from before ``emit_xspace`` saves its profile under the root it is given, and may send
files that it made for the tools that were requested. Upstream's client writes those beside the
profile (xla/tsl/profiler/rpc/client/save_profile.cc), under whatever name they come with.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from peakline.capture.answer import Answer, has_events
from peakline.errors import PeaklineError
from peakline.formats.common.files import open_to_read
from peakline.formats.common.urls import connect
from peakline.repository import HostFile, NewSession, Repository, Session, is_url
from peakline.wire import Buffer, as_buffer

_NOT_KEPT = "tf_stats_helper_result"
_MOST_NAME = 100
_MOST_EMPTY = 1 << 20
_SHOWN = 5


def saved_size(repository: Repository, session: NewSession, host: str) -> int | None:
    """The size of the file that ``host`` itself saved in the session; None when there is none."""
    file = _saved(repository, session, host)
    try:
        if file is None or not is_url(file.path):
            return None if file is None else file.status().bytes
        system, place = connect(file.path, file.storage_options)
        return int(system.size(place))
    except (FileNotFoundError, PeaklineError):
        return None


def drop_saved_empty(repository: Repository, session: NewSession, host: str) -> None:
    """Remove the file that an old server saves even of an empty trace, where the disk is local.

    Only a small file without a single event goes: this capture made the session, which would
    else be listed as one that can be opened.
    """
    file = _saved(repository, session, host)
    if file is None or is_url(file.path):
        return
    # Another user's file, perhaps; the trace is no less empty.
    with suppress(OSError, PeaklineError):
        with os.fdopen((file.opener or open_to_read)(file.path), "rb") as stream:
            content = stream.read(_MOST_EMPTY + 1)
        if len(content) <= _MOST_EMPTY and not has_events(as_buffer(content)):
            session.remove(file.path.rpartition(os.sep)[2])


def _saved(repository: Repository, session: NewSession, host: str) -> HostFile | None:
    name = session.session_id
    try:
        if is_url(session.path):
            return repository.session(name).host(host)
        # By itself: a repository that lacks the session would list all others.
        return Session(name, name, session.path, confinement=session.confinement).host(host)
    except PeaklineError:
        return None


def listed_names(answer: Answer) -> list[str]:
    """The names of the first tools' files."""
    names = [_safe_name(file.name) for file in answer.tool_files]
    more = len(names) - _SHOWN
    return [*names[:_SHOWN], f"{more} more"] if more > 0 else names


def keep_tool_files(answer: Answer, host: str, session: NewSession) -> list[str]:
    """Write the tools' files beside the profile; returns what could not be stored, a line each."""
    notes = []
    for file in answer.tool_files:
        if file.name.endswith(_NOT_KEPT):
            continue
        name = _safe_name(file.name)
        content = answer.buffer[file.start : file.start + file.length]
        try:
            session.write_beside(host, name, partial(_write, content))
        except PeaklineError as error:
            notes.append(f"the file {name} of an old tool was not stored: {error}")
    return notes


def _write(content: Buffer, stream: BinaryIO) -> None:
    stream.write(content.data)


def _safe_name(name: str) -> str:
    """``name`` without anything that a path could be made of."""
    plain = "".join(c if c.isprintable() and c not in "/\\:" else "_" for c in name)
    return plain.lstrip(".")[:_MOST_NAME] or "_"
