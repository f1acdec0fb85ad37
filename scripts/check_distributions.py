"""Check a source distribution and its wheel: what the repository has, no more and no less.

    scripts/check_distributions.py build/dist [build/wheel]

The first folder has what `python -m build` made, the second the wheel that was built in the tree;
without it only the source distribution is compared. Exits with 1 and a line for every difference.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
_MADE = ("PKG-INFO", "setup.cfg", "src/peakline.egg-info/")
"""What setuptools writes into a source distribution."""


def files_of_source(sdist: Path) -> dict[str, bytes]:
    """The files of a source distribution by their places in the repository."""
    result = {}
    with tarfile.open(sdist) as archive:
        for member in archive:
            name = str(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
            content = archive.extractfile(member)
            if content is not None and not name.startswith(_MADE):
                result[name] = content.read()
    return result


def files_of_wheel(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of_repository(root: Path) -> dict[str, bytes]:
    """What git has of the tree, as it is on the disk."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return {name: (root / name).read_bytes() for name in listed if (root / name).is_file()}


def differences(one: dict[str, bytes], other: dict[str, bytes], names: str) -> list[str]:
    """A line for every file that only one has, or that is not the same in both."""
    first, second = names.split()
    return [
        f"only in the {first if name in one else second}: {name}"
        if (name in one) != (name in other)
        else f"not the same in {first} and {second}: {name}"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]


def main(made: Path, built: Path | None = None) -> int:
    """Compare, print, and return the exit code."""
    (sdist,) = made.glob("*.tar.gz")
    result = differences(files_of_source(sdist), files_of_repository(ROOT), "sdist repository")
    if built is not None:
        (wheel,), (own,) = made.glob("*.whl"), built.glob("*.whl")
        result += differences(
            files_of_wheel(wheel), files_of_wheel(own), "sdist's-wheel tree's-wheel"
        )
    print("\n".join(result) or f"{sdist.name}: as the repository has it")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
