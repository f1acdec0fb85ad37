"""A base install: programs that find of other packages only what `pip install peakline` brings."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HIDING = """
import sys

HIDDEN = frozenset({hidden!r}.split())


class Hiding:
    \"\"\"Finds nothing of what is hidden; it comes first.\"\"\"

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Hiding)
"""


@cache
def base_distributions(root: Path) -> frozenset[str]:
    """What the base requirements bring, with what these need on this machine."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    result: set[str] = set()
    wanted = [Requirement(line) for line in project["dependencies"]]
    while wanted:
        one = wanted.pop()
        name = canonicalize_name(one.name)
        extras = one.extras or {""}
        if name in result:
            continue
        result.add(name)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue
        wanted += [
            need
            for need in map(Requirement, lines)
            if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)
        ]
    return frozenset(result)


def bare_environment(root: Path, folder: Path) -> dict[str, str]:
    """The environment of a program that finds, beside Python's own, base packages alone.

    ``folder`` gets the file that hides the others, also from the program's own processes.
    """
    base = base_distributions(root)
    hidden = [
        module
        for module, names in packages_distributions().items()
        if module != "peakline" and base.isdisjoint(map(canonicalize_name, names))
    ]
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(HIDING.format(hidden=" ".join(sorted(hidden))))
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def run(environment: dict[str, str], *words: str, code: str | None = None):
    """Python, with ``code`` or else Peakline's command line; both outputs as text."""
    start = ["-m", "peakline"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *words],
        env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
