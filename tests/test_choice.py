"""What `make test` leaves out runs in `make nightly`, `make conformance` or `make soak`."""

import itertools
import json
import re
import subprocess
import sys
import tomllib

import pytest
from _pytest.mark.expression import Expression

from tests.each_row import each_row
from tests.sweeps import DATA, choice

MARKS = ("conformance", "hypothesis", "nightly", "soak")
COLLECTED = """
import json, sys
import pytest

class Reporter:
    def pytest_collection_modifyitems(self, items):
        marks = [[item.nodeid, [one.name for one in item.iter_markers()]] for item in items]
        print(json.dumps(marks))

sys.exit(pytest.main(["--collect-only", "-qq", "-m", "", "-p", "no:cacheprovider"], [Reporter()]))
"""


@pytest.fixture(scope="module")
def expressions(root):
    """Which marks `make test`, `nightly`, `conformance` and `soak` take."""
    options = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    makefile = (root / "Makefile").read_text()
    soak = (root / "scripts" / "soak.py").read_text()
    return {
        "test": options["addopts"][options["addopts"].index("-m") + 1],
        "nightly": re.findall(r'^\t    -m "([^"$]+)"$', makefile, re.MULTILINE)[0],
        "conformance": re.findall(r"^PEERS_TESTS \?= (.*)$", makefile, re.MULTILINE)[0],
        "soak": re.findall(r'_pytest\("-m", "(soak)"\)', soak)[0],
    }


def takers(expressions, marks):
    return {
        name
        for name, text in expressions.items()
        if Expression.compile(text).evaluate(lambda mark, **_: mark in marks)
    }


def test_every_mark_is_of_a_run(expressions):
    for count in range(len(MARKS) + 1):
        for marks in itertools.combinations(MARKS, count):
            runs = takers(expressions, marks)
            assert runs, marks
            is_left_out = {"conformance", "nightly", "soak"} & set(marks)
            assert ("test" in runs) == (not is_left_out), marks
            if "nightly" in marks and "soak" not in marks:
                assert runs & {"nightly", "conformance"}, marks
    assert takers(expressions, {"hypothesis"}) == {"test", "nightly"}


def test_the_nightly_run_compares_with_the_real_programs_too(root):
    recipe = re.search(r"^nightly:.*\n(?:\t.*\n)+", (root / "Makefile").read_text(), re.MULTILINE)
    assert "$(MAKE) conformance\n" in recipe[0]
    assert "make nightly" in (root / ".github" / "workflows" / "nightly.yml").read_text()


@each_row("part", ["page", "pairs", "samples"])
def test_a_choice_has_a_reason(part):
    assert all(choice()[part].values())


@each_row("name", choice()["samples"])
def test_a_chosen_sample_is_there(name):
    assert (DATA / name).is_file()


@each_row("name", choice()["pairs"])
def test_a_chosen_pair_is_there(name):
    assert (DATA / "diagnosis" / name).is_dir()


@pytest.mark.nightly
def test_no_test_is_left_out_of_every_run(root, expressions):
    """Looks at every test that there is."""
    run = subprocess.run(
        [sys.executable, "-c", COLLECTED], cwd=root, capture_output=True, text=True, check=True
    )
    (line,) = [one for one in run.stdout.splitlines() if one.startswith("[[")]
    marks = {name: set(own) for name, own in json.loads(line)}
    assert len(marks) > 8000
    assert [name for name, own in marks.items() if not takers(expressions, own)] == []
    # `make conformance` runs one folder.
    beside = [
        name
        for name, own in marks.items()
        if takers(expressions, own) == {"conformance"} and not name.startswith("tests/conformance/")
    ]
    assert beside == []
    scenarios = {name.removeprefix("tests/web/").replace(".py", "") for name in marks}
    scenarios |= {name.partition("[")[0] for name in scenarios}
    assert [name for name in choice()["page"] if name not in scenarios] == []
