"""What `scripts/check_house.py` counts."""

import ast
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location

import pytest


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


def test_every_figure_has_a_limit(check, root):
    limits = tomllib.loads((root / "scripts" / "house.toml").read_text("utf-8"))
    now = check.figures(check.read_modules())
    assert {part: {*entries} for part, entries in limits.items()} == {
        part: {*entries} for part, entries in now.items()
    }
