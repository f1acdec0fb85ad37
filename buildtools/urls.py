"""The project's pages in the metadata, which an index shows.

No address is written in this repository: whoever publishes a build says in ``PEAKLINE_REPOSITORY``
where the repository is, as .github/workflows/wheels.yml does. Without it there are none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def project_urls(root: Path) -> dict[str, str]:
    """By label, for the source in ``root``.

    A source distribution repeats what it was made with, so that a wheel built of it is the same.
    """
    address = os.environ.get("PEAKLINE_REPOSITORY", "").rstrip("/")
    if not address:
        made = root / "PKG-INFO"
        lines = made.read_text("utf-8") if made.exists() else ""
        return dict(re.findall(r"^Project-URL: (\w+), (\S+)$", lines, re.MULTILINE))
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/HEAD/docs",
        "Changelog": f"{address}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{address}/issues",
        "Source": address,
    }
