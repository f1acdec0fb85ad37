"""The plugin where no framework is installed: loading, settings, arguments, clear failures."""

import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.each_row import each_row

from peakline.pytest import plugin

HEAD = "import pytest\n"
_HERE = SimpleNamespace(dir=Path())


@pytest.fixture
def run(tmp_path):
    """Run pytest over a file in a process of its own, with this plugin and no other."""

    def start(source, *arguments, ini="", plugins=("-p", "peakline.pytest.plugin"), python=()):
        (tmp_path / "test_it.py").write_text(HEAD + source)
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}")
        command = [sys.executable, *python, "-m", "pytest", *plugins, "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "--strict-markers", *arguments, "test_it.py"],
            cwd=tmp_path,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "300"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return start


def test_it_is_an_entry_point_of_pytest():
    result = distribution("peakline").entry_points.select(group="pytest11")
    assert {point.name: point.value for point in result} == {"peakline": "peakline.pytest.plugin"}


def test_loading_it_imports_nothing_heavy_and_warns_of_nothing(run):
    code, output = run(
        "import sys\n"
        "def test_it():\n"
        "    heavy = {'numpy', 'pyarrow', 'duckdb', 'google.protobuf', 'jax'}\n"
        "    assert heavy.isdisjoint(sys.modules)\n"
        "    ours = {name for name in sys.modules if name.split('.')[0] == 'peakline'}\n"
        "    assert ours == {'peakline', 'peakline.errors', 'peakline.lazy', 'peakline.pytest',\n"
        "                    'peakline.pytest.marks', 'peakline.pytest.plugin',\n"
        "                    'peakline.safe_text', 'peakline.text'}\n",
        python=("-W", "error"),
    )
    assert (code, "warning" in output) == (0, False), output
    assert "device memory" not in output


def test_the_marks_and_options_explain_themselves(run):
    _, marks = run("", "--markers")
    assert "@pytest.mark.limit_device_memory(size, *, allocator=None, framework=None): " in marks
    assert "@pytest.mark.limit_growth_per_step(size, *, allocator=None, framework=None): " in marks
    assert "@pytest.mark.limit_program_memory(size, *, framework=None): " in marks
    _, help_text = run("", "--help")
    for word in ("--peakline-dir", "--peakline-summary", "--peakline-tf-bfc", "peakline_framework"):
        assert word in help_text
    _, fixtures = run("", "--fixtures")
    assert "peakline_profile" in fixtures


@each_row(
    ("mark", "reason"),
    [
        ("limit_device_memory('12 apples')", "limit_device_memory: '12 apples' is no size;"),
        ("limit_device_memory(-1)", "limit_device_memory: -1 is no size;"),
        ("limit_device_memory(True)", "limit_device_memory: True is no size;"),
        ("limit_device_memory()", "one size, not 0"),
        ("limit_growth_per_step('1MB', 2)", "one size, not 2"),
        ("limit_growth_per_step('1MB', steps=2)", "no argument 'steps'"),
        ("limit_growth_per_step('1MB', framework='mxnet')", "no framework 'mxnet'; there is: jax,"),
        ("limit_device_memory('1MB', allocator=3)", "allocator is a name, not 3"),
    ],
)
def test_wrong_arguments_fail_the_test_before_it_runs(run, mark, reason):
    code, output = run(f"@pytest.mark.{mark}\ndef test_it(): raise SystemError('it ran')\n")
    assert code == 1
    assert reason in output
    assert "it ran" not in output
    assert "Traceback" not in output
    assert "During handling" not in output


def test_marks_may_not_name_two_frameworks(run):
    code, output = run(
        "@pytest.mark.limit_device_memory('1MB', framework='jax')\n"
        "@pytest.mark.limit_growth_per_step('1MB', framework='tensorflow')\n"
        "def test_it(): pass\n"
    )
    assert (code, "two frameworks, jax and tensorflow" in output) == (1, True)


@each_row("where", ["mark", "class", "module", "fixture"])
def test_without_a_framework_a_test_fails_and_says_so(run, where):
    source = {
        "mark": "@pytest.mark.limit_device_memory('1MB')\ndef test_it(): pass\n",
        "class": "@pytest.mark.limit_growth_per_step('1MB')\nclass TestIt:\n"
        "    def test_it(self): pass\n",
        "module": "pytestmark = pytest.mark.limit_device_memory('1MB')\ndef test_it(): pass\n",
        "fixture": "def test_it(peakline_profile): pass\n",
    }[where]
    code, output = run(source)
    assert code == 1
    assert (
        "neither JAX, TensorFlow nor PyTorch is imported before the test begins: name the one"
        in output
    )


@each_row(("name", "spelled"), [("jax", "JAX"), ("tensorflow", "TensorFlow")])
def test_a_named_framework_that_is_not_installed_fails_the_test(run, name, spelled):
    source = "@pytest.mark.limit_device_memory('1MB')\ndef test_it(): raise SystemError('it ran')\n"
    code, output = run(source, ini=f"peakline_framework = {name}\n")
    assert code == 1
    assert f"peakline: {spelled} cannot be imported: No module named" in output
    assert "it ran" not in output


def test_an_unknown_framework_in_the_settings_ends_the_run(run):
    code, output = run("def test_it(): pass\n", ini="peakline_framework = mxnet\n")
    assert (code, "peakline_framework is 'mxnet'; there is: jax, tensorflow, torch" in output) == (
        4,
        True,
    )


def test_a_test_that_is_skipped_or_has_no_mark_is_not_profiled(run):
    code, output = run(
        "@pytest.mark.skip\n@pytest.mark.limit_device_memory('1MB')\ndef test_skipped(): pass\n"
        "def test_plain(): pass\n"
    )
    assert (code, "1 passed, 1 skipped" in output) == (0, True)


@each_row("by", ["option", "setting"])
def test_the_allocator_of_tensorflow_is_chosen_before_a_conftest_runs(run, tmp_path, by):
    (tmp_path / "conftest.py").write_text(
        "import os\nCHOSEN = os.environ.get('TF_CPU_ALLOCATOR_USE_BFC')\n"
    )
    source = "def test_it(pytestconfig):\n    import conftest\n    assert conftest.CHOSEN == '1'\n"
    arguments = ("--peakline-tf-bfc",) if by == "option" else ()
    code, output = run(
        source, *arguments, ini="" if arguments else "peakline_tensorflow_bfc = true\n"
    )
    assert code == 0, output


def test_it_is_too_late_for_the_allocator_when_tensorflow_is_there(run, tmp_path):
    (tmp_path / "early.py").write_text("import sys\nsys.modules['tensorflow'] = sys\n")
    code, output = run(
        "def test_it(): pass\n",
        "--peakline-tf-bfc",
        plugins=("-p", "early", "-p", "peakline.pytest.plugin"),
    )
    assert code == 4
    assert "TensorFlow is imported already, so its CPU allocator is chosen" in output


class _Broken:
    """A recorder whose profile nobody can read."""

    def __init__(self, error):
        self.error = error

    def stop(self):
        raise self.error

    @property
    def path(self):
        raise self.error


@each_row("error", [ValueError("x"), MemoryError(), RecursionError(), KeyError("x"), OSError(5)])
def test_a_profile_that_breaks_its_reader_fails_its_test_in_one_line(request, error):
    wanted = plugin.wanted_by(request.node)
    with pytest.raises(pytest.fail.Exception) as failed:
        plugin._judge(request.node, _Broken(error), wanted)
    assert failed.value.msg.startswith(f"peakline: {request.node.nodeid}: ")
    # The failure of the test itself is not replaced by that of its profile.
    folder = SimpleNamespace(
        nodeid="x", config=SimpleNamespace(getoption=lambda _: "folder", invocation_params=_HERE)
    )
    assert plugin._keep(folder, _Broken(error), quietly=True) is None
