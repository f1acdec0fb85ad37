"""Where TensorFlow's profiler put its files: what a recording takes of them."""

from __future__ import annotations

import shutil
from pathlib import Path


def take_profile(logs: str, target: Path) -> None:
    """Move the one profile below ``logs`` to ``target``, and drop the rest."""
    (profile,) = Path(logs).rglob("*.xplane.pb")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(profile, target)
    shutil.rmtree(logs)
