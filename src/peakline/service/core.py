"""What every face of the server does, without a word of its protocol."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline.deadline import check_deadline, within
from peakline.engine import Answer, Engine, Gate
from peakline.errors import (
    CancelledError,
    DeadlineError,
    InputError,
    NotFoundError,
    UnforeseenError,
    UsageError,
    faults_of,
)
from peakline.repository import Repository, Session, check_name
from peakline.service.access import Access
from peakline.service.capturing import Captures, SessionsInTheMaking, limited
from peakline.service.metrics import Metrics
from peakline.service.session_pages import PageWanted, SessionPages
from peakline.service.settings import Settings
from peakline.service.uploading import Uploads
from peakline.tables.query import SqlParameters, checked_parameters
from peakline.tables.sql_process.answer import Form
from peakline.tables.sql_process.pool import Question, WrittenRows

if TYPE_CHECKING:
    from peakline.figures.named import FigureQuestion


LONGEST = 1000
"""Characters. A gRPC status travels in a header, and a header has little room."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BARE = "(root)"


def one_line(text: str, longest: int = LONGEST) -> str:
    """``text`` as one line of printable ASCII of at most ``longest`` characters.

    What ASCII has not, and what moves a terminal's cursor, is written with backslashes.
    """
    return _cut(_plain(" ".join(text.split())), longest)


def _plain(text: str) -> str:
    line = text.encode("ascii", "backslashreplace").decode("ascii")
    return _CONTROL.sub(lambda result: f"\\x{ord(result[0]):02x}", line)


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


class Wording:
    """Messages without the absolute places of ``roots`` and of temporary files.

    A path inside a root is written from there on, which is what a caller can name. What an error
    quotes of the caller's own text (`PeaklineError.quoting`) stays as the caller wrote it: it is
    nothing new to the caller, and a change in it would show which places the server knows.
    """

    def __init__(self, roots: Iterable[str]) -> None:
        places = {tempfile.gettempdir()}
        for root in roots:
            if "://" in root:
                places.add(root.rstrip("/"))
            else:
                places |= {os.path.abspath(root), os.path.realpath(root)}  # noqa: PTH100 (as text)
        # A longer place first: one root may lie in another.
        known = sorted((place for place in places if place.strip("/")), key=len, reverse=True)
        self._places = re.compile(
            rf"(?<![\w.-])(?:{'|'.join(map(re.escape, known))})(?:(/+)|(?![\w-]|\.\w))"
        )

    def line(self, said: BaseException | str) -> str:
        """An error's message, or a text, as a caller may see it."""
        text = str(said)
        quotes = [quote for quote in getattr(said, "quotes", ()) if quote]
        if not quotes:
            return one_line(self._scrubbed(text))
        # A longer quote first: one may be a part of another.
        result = re.compile("|".join(map(re.escape, sorted(quotes, key=len, reverse=True))))
        parts, end = [], 0
        for match in result.finditer(text):
            parts += [self._scrubbed(text[end : match.start()]), match[0]]
            end = match.end()
        parts.append(self._scrubbed(text[end:]))
        return _cut(_plain("".join(parts)), LONGEST)

    def _scrubbed(self, text: str) -> str:
        return self._places.sub(lambda result: "" if result[1] else _BARE, text)


_FORMAT = "format"
_MOST_PARAMETER_BYTES = 64 << 10
LISTS = 2
"""How many lists of sessions are made at once: the first one of a large repository takes long."""
_LOOKING_S = 10.0
_LOOKING_SHARE = 0.8
"""A list looks at sessions for so long, or this share of the caller's time where that is less."""


@dataclass(frozen=True)
class Listing:
    """The sessions of a repository with the tools each one supports, newest first.

    ``problems`` names the sessions that cannot be read, a line each. ``unfinished`` sessions
    were not looked at in time, or not at all of their hosts: they have the tools that are known.
    Tools are None where nobody looked for them. Of a page, ``matching`` sessions are on all pages
    of ``all`` sessions.
    """

    sessions: tuple[tuple[Session, tuple[str, ...] | None], ...]
    problems: tuple[str, ...] = ()
    unfinished: int = 0
    matching: int = 0
    all: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a caller should know beside the list, a line each."""
        if not self.unfinished:
            return self.problems
        many = f"{self.unfinished} of {len(self.sessions)} sessions"
        return (f"the tools of {many} are not all known yet: ask again", *self.problems)


class Analysis:
    """Sessions, tools, SQL, captures and uploads under one set of rules. Thread-safe.

    Every method raises errors of `peakline.errors`, ends at the caller's deadline, and checks
    every name it is given. Tools and SQL share ``gate``. Lists of sessions, and captures and
    uploads, which mostly wait for others, have limits of their own and never hold up a query.
    """

    def __init__(
        self, settings: Settings, *, access: Access, engine: Engine, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._access = access
        self._engine = engine
        self._wording = Wording(settings.roots)
        self._pages = SessionPages(access.host_files)
        self.on_unfinished: Callable[[Repository], object] | None = None
        """Called with the repository that a list could not look through in its time."""
        making = SessionsInTheMaking()
        self.gate = Gate(settings.max_concurrent, settings.max_queued)
        self.lists = Gate(LISTS, settings.max_queued)
        self.captures = Captures(settings, access, metrics, making)
        self.uploads = Uploads(settings, access, metrics, making)

    def public_text(self, error: BaseException | str) -> str:
        """An error or a note as a caller may see it: one line of ASCII, no paths of the server."""
        return self._wording.line(error)

    # -- reading --------------------------------------------------------------------------------

    def listing(self, repository_root: str, wanted: PageWanted | None = None) -> Listing:
        """The sessions of a repository and their tools; what cannot be read is named, not raised.

        ``wanted`` is a page of them.

        Quick rather than complete: what is not known after 10 s, or 80 % of the caller's time, is
        left to the next call, which goes on from there.
        """
        repository = self._access.repository(repository_root)
        result: list[tuple[Session, tuple[str, ...] | None]] = []
        problems, unfinished = [], 0
        with self.lists.enter(), limited(_LOOKING_S, _LOOKING_SHARE) as time_to_look:
            everyone = self.sessions(repository)
            shown, matching = self._pages.page(everyone, wanted or PageWanted())
            if wanted is not None and not wanted.tools:
                unseen = tuple((session, None) for session in shown)
                return Listing(unseen, (), 0, matching, len(everyone))
            for session in shown:
                check_deadline()
                problem = ""
                try:
                    with faults_of(session.path), within(time_to_look):
                        tools, problem = self.look(session)
                except NotFoundError:
                    continue  # removed in the meantime
                except (InputError, UnforeseenError) as error:
                    tools, problem = (), str(error)
                except (CancelledError, DeadlineError):
                    check_deadline()  # the caller's own
                    tools = tuple(self._engine.known_tools(session))
                    unfinished += 1
                result.append((session, tools))
                if problem:
                    problems.append(f"session {session.session_id}: {self.public_text(problem)}")
        if unfinished and self.on_unfinished is not None:
            self.on_unfinished(repository)
        return Listing(tuple(result), tuple(problems), unfinished, matching, len(everyone))

    def sessions(self, repository: Repository) -> list[Session]:
        """The sessions that a list shows, newest first."""
        return repository.sessions()

    def look(self, session: Session) -> tuple[tuple[str, ...], str]:
        """What a list shows of one session: its tools, and where there are none the reason."""
        tools = tuple(self._engine.tools(session))
        return tools, "" if tools else self._engine.problem(session)

    def tool_data(
        self,
        repository_root: str,
        session_id: str,
        host_name: str,
        tool_name: str,
        parameters: Mapping[str, str],
    ) -> Answer:
        """One tool's answer for one host; with an empty ``host_name`` for all of them.

        The parameter ``format`` chooses the output format. A name's final dot, as in fully
        qualified names, is tolerated.
        """
        session, host = self._session_of(repository_root, session_id, host_name)
        notes = () if host else _left_out(session)
        given = dict(parameters)
        size = sum(len(name) + len(value) for name, value in given.items())
        if size > _MOST_PARAMETER_BYTES:
            raise UsageError(
                f"the parameters have {size} characters; {_MOST_PARAMETER_BYTES} are the most"
            )
        chosen = given.pop(_FORMAT, None) or None
        with self.gate.enter():
            answer = self._engine.tool(
                session, tool_name, host=host, parameters=given, format=chosen, remote=True
            )
        return replace(answer, notes=(*answer.notes, *notes)) if notes else answer

    def compare(
        self,
        repository_root: str,
        first: tuple[str, str],
        second: tuple[str, str],
        *,
        format: str | None = None,  # noqa: A002 (the word of the command line)
    ) -> Answer:
        """What changed from one session to another, each with a host's name (empty: its only one).

        Raises as `tool_data` does.
        """
        (one, one_host), (other, other_host) = (
            self._session_of(repository_root, session_id, host)
            for session_id, host in (first, second)
        )
        notes = [
            f"session {session.name}: {note}"
            for session, host in ((one, one_host), (other, other_host))
            for note in (() if host else _left_out(session))
        ]
        with self.gate.enter():
            answer = self._engine.compare(
                one, other, first_host=one_host, second_host=other_host, format=format
            )
        return replace(answer, notes=(*answer.notes, *notes))

    def figure(
        self, repository_root: str, session_id: str, host_name: str, request: FigureQuestion
    ) -> Answer:
        """A figure of one host's profile, as Plotly's JSON; ``null`` where it shows nothing."""
        session, host = self._session_of(repository_root, session_id, host_name)
        with self.gate.enter():
            return self._engine.figure(session, request, host=host)

    def sql(
        self,
        repository_root: str,
        session_id: str,
        host_name: str,
        query: str,
        form: Form,
        parameters: SqlParameters = None,
    ) -> WrittenRows:
        """The rows of one reading SQL statement over one host's tables, or those of all ranks,
        with the values of its parameters.
        """
        session, host = self._session_of(repository_root, session_id, host_name)
        limit, values = self._settings.sql_memory_bytes, checked_parameters(parameters)
        form = replace(form, max_bytes=self._settings.sql_answer_bytes)
        question = Question(query, limit, form, remote=True, parameters=values)
        with self.gate.enter():
            return self._engine.remote_sql(session, question, host=host, public=self.public_text)

    def tables(self, repository_root: str, session_id: str, host_name: str) -> list[str]:
        """The names of the tables that `sql` may ask for."""
        session, host = self._session_of(repository_root, session_id, host_name)
        with self.gate.enter():
            return self._engine.tables(session, host=host)

    def tools(self, repository_root: str, session_id: str) -> list[str]:
        """The names of the tools that have something to show for a host of the session."""
        session, _ = self._session_of(repository_root, session_id, "")
        with self.gate.enter():
            return self._engine.tools(session)

    def tools_and_problem(
        self, repository_root: str, session_id: str
    ) -> tuple[tuple[str, ...], str]:
        """As `tools`, and where there are none the reason, as callers may see it."""
        session, _ = self._session_of(repository_root, session_id, "")
        with self.gate.enter():
            tools, problem = self.look(session)
        return tools, self.public_text(problem) if problem else ""

    def _session_of(
        self, repository_root: str, session_id: str, host_name: str
    ) -> tuple[Session, str]:
        """The session, and the name of the host as its file spells it; empty means all hosts.

        No file is read that lies, links followed, outside the served roots: the session's hosts
        lack such ones, and one that is requested by name, or is the only one, is refused.
        """
        if not session_id:
            raise UsageError("no session named")
        session = self._access.run(repository_root, session_id, nested=True)
        if not host_name:
            hosts, refused = session.hosts_and_refused()
            if refused and not hosts:
                self._access.confine(refused[0].path)
            return session, ""
        check_name("host", host_name)
        try:
            file = session.host(host_name)
        except NotFoundError:
            if not host_name.endswith("."):
                raise
            file = session.host(host_name.removesuffix("."))
        self._access.confine(file.path)
        return session, file.host


def _left_out(session: Session) -> tuple[str, ...]:
    """A note for each host that lies, links followed, outside the served roots."""
    _, refused = session.hosts_and_refused()
    return tuple(
        f"host {file.host}: a link leads out of the served log directories" for file in refused
    )
