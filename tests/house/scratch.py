"""A copy of the package that a test may change, and Python that runs with it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import peakline

_COMMANDS = """
import contextlib, io, json, sys
from peakline.__main__ import main
for line in sys.stdin:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out):
        code = main(json.loads(line))
    out.flush()
    print(json.dumps([code, out.buffer.getvalue().decode()]), flush=True)
"""


class Scratch:
    """The installed package once more under ``folder``: folders of its own, files that are links.

    ``changed`` are the files that were added or edited.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.package = folder / "peakline"
        self.changed: list[str] = []
        path = os.pathsep.join(map(str, (folder, root, root / "scripts")))
        self._environment = os.environ | {"PYTHONPATH": path}
        self._commands: subprocess.Popen[str] | None = None
        shutil.copytree(
            Path(peakline.__file__).parent,
            self.package,
            copy_function=os.symlink,
            ignore=shutil.ignore_patterns("__pycache__"),
        )

    def add(self, name: str, text: str) -> None:
        """A new file, before the first command runs."""
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
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def peakline(self, *arguments: object) -> str:
        """What the command line prints. One process runs all commands: importing takes longer."""
        if self._commands is None:
            self._commands = subprocess.Popen(
                [sys.executable, "-c", _COMMANDS],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        print(json.dumps([*map(str, arguments)]), file=self._commands.stdin, flush=True)
        code, output = json.loads(self._commands.stdout.readline())
        assert code == 0, output
        return output

    def close(self) -> None:
        """End the process of the commands."""
        if self._commands is not None:
            self._commands.communicate()
