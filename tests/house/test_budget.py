"""Budgets, seconds, habits and tours."""

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml
from tests.processor import spent


@pytest.fixture(scope="module")
def check(root):
    spec = spec_from_file_location("check_house", root / "scripts" / "check_house.py")
    module = module_from_spec(spec)
    # Where data classes look for the module of their annotations.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(check, monkeypatch, tmp_path):
    """Make a package of texts by path, and read its modules."""

    def make(texts):
        for path, text in texts.items():
            file = tmp_path / "src" / "peakline" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        monkeypatch.setattr(check, "PACKAGE", tmp_path / "src" / "peakline")
        return check.read_modules()

    return make


def test_blank_lines_and_docstrings_are_no_lines(check):
    text = '"""What it\n\nis."""\n\nONE = 1\n"""Of one."""\n\n\ndef f():\n    """Says."""\n'
    text += '    # Why.\n    return """\n    text\n    """\n'
    assert check.counted_lines(text, ast.parse(text)) == 7


def test_imports_in_functions_and_circles_through_type_checking_count(check, package):
    modules = package(
        {
            "__init__.py": "",
            "a/__init__.py": "",
            "a/one.py": "from peakline.a import two\nimport peakline.a.two\n\n\ndef f():\n"
            "    import json\n    from peakline.a.three import g\n    return lambda: g(json)\n",
            "a/two.py": "if TYPE_CHECKING:\n    from peakline.a.three import T\n",
            "a/three.py": "if TYPE_CHECKING:\n    from peakline.a.two import U\n",
        }
    )
    assert [module.in_functions for module in modules.values()] == [0, 0, 1, 0, 0]
    assert check.circles(modules) == [["peakline.a.three", "peakline.a.two"]]


def test_a_small_module_has_one_importer_and_no_name_of_its_own(check, package):
    modules = package(
        {
            "a/one.py": "from peakline.a import big, small, derived, twice\n"
            "from peakline.tools import verb\n",
            "a/other.py": "import peakline.a.twice\n",
            "a/big.py": ("A = [\n" + "    1,\n" * 60 + "]\n"),
            "a/small.py": "A = 1\n",
            "a/twice.py": "A = 1\n",
            "a/derived.py": "def columns_of():\n    pass\n",
            "tools/verb.py": "A = 1\n",
        }
    )
    assert check.small_modules(modules) == ["peakline.a.small"]


def test_a_limit_is_lowered_and_never_raised(check, package, monkeypatch, tmp_path, capsys):
    package({"a/one.py": "A = 1\nB = 2\n"})
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "BUDGET", tmp_path / "house.toml")
    monkeypatch.setattr(check.sys, "argv", ["check_house.py", "--lower"])
    assert check.main() == 0
    assert "a = 2\n" in check.BUDGET.read_text()
    package({"a/one.py": "A = 1\n"})
    assert check.main() == 0
    assert "a = 1\n" in check.BUDGET.read_text()
    package({"a/one.py": "A = 1\nB = 2\nC = 3\n"})
    check.main()
    assert "a = 1\n" in check.BUDGET.read_text()
    monkeypatch.setattr(check.sys, "argv", ["check_house.py"])
    assert check.main() == 1
    assert "over the budget: lines.a is 3, its limit 1" in capsys.readouterr().out


def test_every_figure_has_a_limit(check, package, root, monkeypatch):
    # `make lint` counts what is in the rooms and in the tests, which takes seconds.
    monkeypatch.setattr(check, "test_texts", list)
    rooms = [path.parent.name for path in check.PACKAGE.glob("*/__init__.py")]
    modules = package(dict.fromkeys(("one.py", *(f"{room}/one.py" for room in rooms)), ""))
    limits = tomllib.loads((root / "scripts" / "house.toml").read_text("utf-8"))
    now = check.figures(modules)
    assert {part: {*entries} for part, entries in limits.items()} == {
        part: {*entries} for part, entries in now.items()
    }


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


def test_a_fragment_of_the_changelog_has_a_name_a_kind_and_a_sentence(root):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    kinds = {entry["directory"] for entry in project["tool"]["towncrier"]["type"]}
    for path in (root / "changelog.d").iterdir():
        if path.name != "README.md":
            name, kind, suffix = path.name.rsplit(".", 2)
            assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name), path.name
            assert (kind in kinds, suffix) == (True, "md"), path.name
            text = path.read_text("utf-8")
            assert re.fullmatch(r"[^-*#\s].*\.\n", text, re.DOTALL), path.name


def test_the_changelog_has_the_place_where_fragments_go(root):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    text = (root / "CHANGELOG.md").read_text("utf-8")
    assert text.count(project["tool"]["towncrier"]["start_string"]) == 1


def test_hooks_run_what_is_there(root):
    hooks = yaml.safe_load((root / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    assert len(entries) >= 3
    for entry in entries:
        words = shlex.split(entry)
        assert words[0] == ".venv/bin/python"
        assert words[1:3] == ["-m", "ruff"] or (root / words[1]).is_file()


def test_templates_of_issues_are_forms(root):
    forms = [
        yaml.safe_load(path.read_text("utf-8"))
        for path in (root / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
        if path.name != "config.yml"
    ]
    assert len(forms) == 3
    for form in forms:
        assert {"name", "description", "body"} <= form.keys()
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_walks_name_files_that_exist(root):
    text = (root / "CONTRIBUTING.md").read_text("utf-8").partition("## Five walks")[2]
    names = re.findall(
        r"`((?:src/peakline|tests|scripts|formats|trace|timing|toolbox)/[\w/.]+)`", text
    )
    assert len(names) > 15
    for name in names:
        if not re.search("[A-Z]{2}", name):
            assert (root / name).exists() or (root / "src/peakline" / name).exists(), name


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
