"""What of others lies among the page's files is what its registry has, with its licence."""

import hashlib
import re
from importlib.resources import files
from pathlib import Path

VENDOR = Path(str(files("peakline"))) / "web" / "static" / "vendor"
FIRST = "// @ts-nocheck\n"


def test_every_folder_has_a_licence_and_says_where_it_is_from():
    folders = [place for place in VENDOR.iterdir() if place.is_dir()]
    assert [place.name for place in folders] == ["dagre"]
    for place in folders:
        assert "Permission is hereby granted" in (place / "LICENSE.txt").read_text("utf-8")
        told = (place / "README.txt").read_text("utf-8")
        assert re.search(r"^package +@dagrejs/dagre \d+\.\d+\.\d+ ", told, re.MULTILINE)
        assert re.search(r"^licence +MIT ", told, re.MULTILINE)


def test_dagre_is_the_file_of_its_package_with_one_line_before_it():
    told = (VENDOR / "dagre" / "README.txt").read_text("utf-8")
    text = (VENDOR / "dagre" / "dagre.js").read_text("utf-8")
    assert text.startswith(FIRST)
    digest = hashlib.sha256(text.removeprefix(FIRST).encode()).hexdigest()
    assert re.search(rf"^sha256 +{digest} ", told, re.MULTILINE)
