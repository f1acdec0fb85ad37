"""The budget of processor seconds that `make test` compares with what its tests took."""

import importlib.util
import os
import subprocess
import sys
import tomllib

import pytest
from tests.processor import spent

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.{folder}.test_a.TestOne" name="test_b" time="99">
<properties><property name="processor_seconds" value="{seconds}"/></properties></testcase>
<testcase classname="tests.test_c" name="test_d" time="1"/>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def script(root):
    spec = importlib.util.spec_from_file_location("test_budget", root / "scripts/test_budget.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def budget(root):
    return tomllib.loads((root / "tests" / "budget.toml").read_text())["seconds"]


def test_every_folder_has_one_and_all_are_at_most_six_minutes_of_two_cores(root, script, budget):
    folders = {path.parent for path in (root / "tests").rglob("test_*.py")}
    tops = {folder.relative_to(root / "tests").parts[:1] for folder in folders}
    assert set(budget) == {top[0] if top else "." for top in tops}
    assert script.complaints({}, budget) == []
    assert script.complaints({}, budget | {"more": script.MOST}) != []


def test_a_folder_is_named_with_its_slowest_tests(script, tmp_path):
    path = tmp_path / "tests.xml"
    for folder, seconds, expected in (
        ("wire", 19.9, []),
        ("wire", 20.1, ["tests/wire took 20 s, its budget is 10 s:",
                        "  20.1 s  wire.test_a.TestOne::test_b"]),
        ("new", 3, ["tests/new took 3 s and has no budget"]),
    ):  # fmt: skip
        path.write_text(JUNIT.format(folder=folder, seconds=seconds))
        assert script.complaints(script.times_of(path), {"wire": 10, ".": 1}) == expected


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system has no /proc")  # noqa: PTH112
def test_what_a_running_process_does_is_counted_once():
    code = "import time\nwhile time.process_time() < 2: pass\nprint(flush=True)\ninput()"
    before = spent()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        running = spent()
        process.communicate(b"\n")
    ended = spent()
    # To the clock's ticks; what Python does besides is far less than what is counted.
    assert 1.9 <= running - before < 3.5
    assert -0.1 < ended - running < 1.5
