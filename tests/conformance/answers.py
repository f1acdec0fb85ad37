"""Answers that peers once gave, in compressed files that a test reads in their place.

A file belongs to one peer, its version and one subject: ``tests/data/answers/PEER-VERSION`` has a
``SUBJECT.zip`` for each, with a member for each question. `make answers` asks the peers again.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.conformance.peer import Refused

FOLDER = Path(__file__).parent.parent / "data" / "answers"
_ERROR = " (error)"
_ALWAYS = (1980, 1, 1, 0, 0, 0)
"""The same answers are the same file."""


class Answers:
    """What ``peer`` (``NAME-VERSION``) said.

    With ``asking`` nothing is read: every question is asked, and `save` writes what was answered.
    """

    def __init__(self, peer: str, *, asking: bool) -> None:
        self._folder, self._asking = FOLDER / peer, asking
        self._new: dict[str, dict[str, bytes]] = {}

    def get(self, subject: str, question: str, ask: Callable[[], bytes]) -> bytes:
        """The recorded answer to a question; `Refused` where it was an error."""
        if self._asking:
            return self._ask(self._new.setdefault(subject, {}), question, ask)
        path = self._folder / f"{subject}.zip"
        with zipfile.ZipFile(path) as known:
            names = known.namelist()
            if question in names:
                return known.read(question)
            if question + _ERROR in names:
                raise Refused(known.read(question + _ERROR).decode())
        raise LookupError(f"{path} has no answer to {question}; make answers records it")

    def _ask(self, new: dict[str, bytes], question: str, ask: Callable[[], bytes]) -> bytes:
        try:
            new[question] = ask()
        except Refused as error:
            new[question + _ERROR] = str(error).encode()
            raise
        return new[question]

    def save(self) -> None:
        """Write what was asked."""
        for subject, new in self._new.items():
            self._folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(self._folder / f"{subject}.zip", "w") as file:
                for question in sorted(new):
                    member = zipfile.ZipInfo(question, _ALWAYS)
                    member.compress_type = zipfile.ZIP_LZMA
                    file.writestr(member, new[question])
