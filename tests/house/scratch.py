"""A copy of the package that a test may change, and Python that runs with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import peakline


class Scratch:
    """The installed package once more under ``folder``: folders of its own, files that are links.

    ``changed`` are the files that were added or edited.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.package = folder / "peakline"
        self.changed: list[str] = []
        self._path = os.pathsep.join(map(str, (folder, root, root / "scripts")))
        shutil.copytree(
            Path(peakline.__file__).parent,
            self.package,
            copy_function=os.symlink,
            ignore=shutil.ignore_patterns("__pycache__"),
        )

    def add(self, name: str, text: str) -> None:
        """A new file."""
        path = self.package / name
        assert not path.exists()
        path.write_text(text, encoding="utf-8")
        self.changed.append(name)

    def edit(self, name: str, before: str, after: str) -> None:
        """Put ``after`` in the one place of ``before``."""
        path = self.package / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        path.unlink()
        path.write_text(text.replace(before, after), encoding="utf-8")
        self.changed.append(name)

    def run(self, *arguments: object) -> str:
        """What Python prints with the copy in the package's place."""
        result = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": self._path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def peakline(self, *arguments: object) -> str:
        """What the command line prints."""
        return self.run("-m", "peakline", *arguments)
