"""Print the twenty slowest tests of runs of pytest: ``slowest_tests.py JUNIT_XML...``."""

from __future__ import annotations

import sys
from xml.etree import ElementTree as ET

SHOWN = 20


def main() -> None:
    """Read the files and print; what sets up and ends a test is part of its time."""
    tests = [
        (float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}")
        for path in sys.argv[1:]
        for case in ET.parse(path).iter("testcase")  # noqa: S314 (we wrote it ourselves)
    ]
    for seconds, name in sorted(tests, reverse=True)[:SHOWN]:
        print(f"{seconds:7.1f} s  {name}")


if __name__ == "__main__":
    main()
