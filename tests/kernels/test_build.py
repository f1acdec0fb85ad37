"""How the kernels are built: the compiler, Python's headers, and the declarations for Cython."""

import ast
import importlib.util
import platform
import sys

import pytest


@pytest.fixture
def build(root, monkeypatch):
    """The module ``buildtools/kernels.py``, as if nothing had been found out yet."""
    monkeypatch.delenv("CC", raising=False)
    spec = importlib.util.spec_from_file_location("built", root / "buildtools" / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kernel_is_compiled_and_no_other_module(build):
    import peakline.kernels

    names = {path.stem for path in build.compiled_modules()}
    assert {"wire_walk", "text_scan", "nesting"} <= names
    assert names.isdisjoint({"__init__", "bits", "layout", "text_layout"})
    for name in sorted(names):
        module = importlib.import_module(f"{peakline.kernels.__name__}.{name}")
        assert not module.__file__.endswith(".py"), name


def test_missing_headers_are_one_line_with_the_package_to_install(build, monkeypatch, tmp_path):
    monkeypatch.setattr(build.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(SystemExit) as error:
        build.check_headers()
    message = str(error.value)
    assert "\n" not in message
    assert str(tmp_path / "Python.h") in message
    assert f"python{sys.version_info.major}.{sys.version_info.minor}-dev" in message


def test_the_compiler_that_is_named_is_taken(build, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setenv("CC", "ccache gcc")
    assert build.compiler() == ["ccache", "gcc"]


def test_where_no_compiler_works_the_build_brings_one(build, monkeypatch, tmp_path):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build.sysconfig, "get_config_var", lambda _: "cc")
    assert "ziglang" in build.compiler()


def test_a_platform_without_any_compiler_is_told_so(build, monkeypatch, tmp_path):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build.sysconfig, "get_config_var", lambda _: None)
    with pytest.raises(SystemExit, match="install gcc, or name one in CC"):
        build.compiler()


def test_declarations_say_in_c_what_python_says(build):
    (function,) = ast.parse(
        "def f(a: cython.const[cython.uchar][::1], b: cython.longlong[:, ::1], "
        "c: cython.ulonglong) -> cython.void: ..."
    ).body
    assert build._declaration(function) == (
        "cdef void f(const unsigned char[::1] a, long long[:, ::1] b, unsigned long long c) "
        "noexcept nogil"
    )


def test_a_type_that_no_kernel_may_have_is_refused(build):
    (function,) = ast.parse("def f(a: dict[str, int]) -> cython.void: ...").body
    with pytest.raises(SystemExit, match="is no type that a kernel may have"):
        build._declaration(function)
