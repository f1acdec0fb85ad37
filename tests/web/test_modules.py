"""What of the page needs no document: its modules in Node, without a browser (tests/page)."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from peakline import web

TESTS = Path(__file__).parents[1] / "page"
LEAST = (20, 19)
"""The first that takes a file for a module by what is in it."""


@pytest.fixture(scope="module")
def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed; make test brings it")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", said)))[:2] < LEAST:
        pytest.skip(f"Node is too old: {said}")
    return found


def test_the_modules_do_what_their_tests_say(node):
    files = sorted(map(str, TESTS.glob("*.test.js")))
    assert files
    static = Path(web.__file__).parent / "static"
    run = subprocess.run(
        [node, "--test", "--test-reporter=tap", *files],
        env={**os.environ, "PEAKLINE_PAGE_MODULES": str(static / "js")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    (count,) = re.findall(r"^# pass (\d+)$", run.stdout, re.MULTILINE)
    assert int(count) >= len(files)
