"""The tours of docs/architecture.md name files and functions that exist."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "peakline"
_FILE = r"`([\w/]+(?:\.py|\.js|/))`"


def _parts(root):
    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    for title in ("From a byte to a row", "From a row to a pixel"):
        yield re.split(r"^## ", text.split(f"## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_every_file_of_the_tours_exists(root):
    files = [file for part in _parts(root) for file in re.findall(_FILE, part)]
    assert len(files) > 20
    assert [file for file in files if not (PACKAGE / file).exists()] == []


def test_every_name_of_the_tours_is_in_its_file(root):
    pairs = [pair for part in _parts(root) for pair in re.findall(rf"{_FILE}:\s+`(\w+)`", part)]
    assert len(pairs) > 15
    missing = [
        (file, name)
        for file, name in pairs
        if not re.search(
            rf"^(?:export )?(?:async )?(?:def|class|function) {name}\b|^{name}\b.* = ",
            (PACKAGE / file).read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    ]
    assert missing == []
