"""A deadline that is over at a chosen look, and sessions made of real profiles."""

import shutil
from pathlib import Path

from peakline.deadline import Deadline
from peakline.errors import DeadlineError
from peakline.repository import Repository, Session

DATA = Path(__file__).parent.parent / "data"


class EndingAt(Deadline):
    """Raises DeadlineError at the ``look``-th `check`, and at every later one."""

    def __init__(self, look: int) -> None:
        super().__init__()
        self.look, self.looks = look, 0

    def check(self) -> None:
        self.looks += 1
        if self.looks >= self.look:
            raise DeadlineError(f"ended at look {self.look}")


def session_of(logdir: Path, files: dict[str, Path], session_id: str = "s") -> Session:
    """A session with a copy of each file, by its name there."""
    folder = logdir / "plugins" / "profile" / session_id
    folder.mkdir(parents=True)
    for name, source in files.items():
        shutil.copyfile(source, folder / name)
    return Repository(logdir).session(session_id)
