"""What is installed: everything that belongs to the package, and cheap to import."""

import gzip
import subprocess
import sys
from importlib.metadata import entry_points, requires, version
from importlib.resources import files
from pathlib import Path

import peakline

_MADE = {".c", ".pxd", ".so", ".pyd"}
"""What compiling in place leaves beside the kernels, and what only compiling needs."""
_COMPILED = "\nimport cython\n"
"""A kernel that says this is installed compiled, without its source."""
_HEAVY = ("pyarrow", "duckdb", "numpy", "google.protobuf", "rich", "click")


def test_the_version_is_the_distribution_s():
    assert peakline.__version__ == version("peakline")


def test_the_package_carries_its_data(root):
    """Every file under src/ is installed: modules, schema, types, the demo session."""
    source = root / "src" / "peakline"
    compiled = {path.relative_to(source) for path in _compiled(source)}
    wanted = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in _MADE
    } - {*map(str, compiled)}
    installed = Path(str(files("peakline")))
    assert compiled
    for name in compiled:
        made = installed.joinpath(name.parent).glob(f"{name.stem}.*")
        assert {".so", ".pyd"} & {path.suffix for path in made}, name
    assert {name for name in wanted if not (installed / name).is_file()} == set()
    assert "py.typed" in wanted
    assert any(name.endswith(".proto") for name in wanted)
    assert any(name.endswith(".pyi") for name in wanted)


def test_the_installed_code_is_the_checkout_s(root):
    source = root / "src" / "peakline"
    installed = Path(str(files("peakline")))
    different = [
        str(path.relative_to(source))
        for path in {*source.rglob("*.py")} - _compiled(source)
        if (installed / path.relative_to(source)).read_bytes() != path.read_bytes()
    ]
    assert different == [], "installed files differ from src/: run make test"


def _compiled(source):
    kernels = (source / "kernels").glob("*.py")
    return {path for path in kernels if _COMPILED in path.read_text("utf-8")}


def test_the_demo_session_is_a_sample_session(sessions):
    place = "plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
    demo = (files("peakline") / "demo" / place).read_bytes()
    assert demo == (sessions / "tf2_cnn" / place).read_bytes()
    assert len(gzip.decompress(demo)) == 953_550


def test_importing_peakline_loads_nothing_heavy():
    code = f"import peakline, sys\nprint([name for name in {_HEAVY!r} if name in sys.modules])\n"
    run = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_every_public_name_can_be_had():
    assert [name for name in peakline.__all__ if getattr(peakline, name, None) is None] == []


def test_the_console_script_is_the_command_line():
    (script,) = entry_points(group="console_scripts", name="peakline")
    assert script.value == "peakline.__main__:main"


def test_no_development_tool_is_a_dependency():
    plain = [line for line in requires("peakline") or [] if "extra ==" not in line]
    names = {line.split(">")[0].split("=")[0].split(";")[0].strip() for line in plain}
    assert names.isdisjoint({"pytest", "hypothesis", "ruff", "mypy", "tensorflow", "xprof", "jax"})
    assert names.isdisjoint({"cython", "setuptools", "ziglang", "numba"})
    assert {"numpy", "protobuf"} <= names
