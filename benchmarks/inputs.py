"""The profiles that are measured: a real one, and its repetitions in time (`scale.py`)."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "tests/data/sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"

SMALL, LARGE, LARGEST = "1 MB (real)", "386 MB", "3 GiB"
"""What the page calls the profiles that have a limit; `profile` knows others, such as 40 MB."""


def profile(data: Path, name: str) -> Path:
    """The profile that the page calls ``name``, in the folder ``data``; made when not there."""
    return _real(data) if name == SMALL else _scaled(data, name.replace(" ", ""))


def _real(data: Path) -> Path:
    """The real profile of 1 MB, in the folder ``data``, which is made."""
    data.mkdir(parents=True, exist_ok=True)
    path = data / "tf2_cnn.xplane.pb"
    if not path.exists():
        path.write_bytes(gzip.decompress(SOURCE.read_bytes()))
    return path


def _scaled(data: Path, target: str) -> Path:
    """Its repetition of about ``target``, such as ``386MB``; made when it is not there."""
    data.mkdir(parents=True, exist_ok=True)
    path = data / f"tf2_cnn_{target}.xplane.pb"
    if not path.exists():
        part = path.with_suffix(".part")
        command = [sys.executable, ROOT / "benchmarks/scale.py", "--target", target, part]
        subprocess.run(command, check=True, stdout=sys.stderr)
        part.rename(path)
    return path
