"""Compiles ``peakline.kernels``: which modules, with which compiler, in which of three ways.

A module of that folder is compiled if it says ``import cython``. Cython makes C of it, a C compiler
a module of Python's stable ABI, so that one wheel serves every Python from `OLDEST` on. The
compiler is the machine's own where that works, else the one in the package ``ziglang``.

``PEAKLINE_KERNELS`` in the environment chooses another way than the one for users: ``checked``
raises IndexError at an index outside of an array, ``sanitized`` runs under the address and
undefined-behaviour sanitizers of gcc or clang. ``CC`` names a compiler, as everywhere.
"""

from __future__ import annotations

import ast
import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = [
    "BUILD",
    "OLDEST",
    "PACKAGE",
    "VARIANT",
    "ZIG",
    "compiled_modules",
    "compiler",
    "extensions",
    "needs_zig",
]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "peakline.kernels"
SOURCES = ROOT / "src" / "peakline" / "kernels"
OLDEST = (3, 11)
"""The oldest Python that a wheel works with: from here on buffers are part of the stable ABI."""
ZIG = "ziglang==0.17.1"
"""The package that brings a C compiler where the machine has none."""
VARIANT = os.environ.get("PEAKLINE_KERNELS", "")
BUILD = f"build/kernels{VARIANT and '-' + VARIANT}"
"""Where C sources and objects go, under the root; they stay, so that an edit compiles one file."""

_TARGETS = {  # glibc 2.17 is that of manylinux2014
    ("Linux", "x86_64"): "x86_64-linux-gnu.2.17",
    ("Linux", "aarch64"): "aarch64-linux-gnu.2.17",
}
_CHECKS = {"": False, "checked": True, "sanitized": False}
_FLAGS = {
    "": ["-O2"],
    "checked": ["-O1"],
    "sanitized": ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"],
}
_SHARED = f"{PACKAGE}._shared"
"""What Cython's typed memoryviews need, once for all modules."""
_IN_C = (SOURCES / "bus_errors.c",)
"""Modules that are no Cython: handlers of signals."""


def compiled_modules() -> list[Path]:
    """The modules of the folder that are compiled, by name."""
    return sorted(p for p in SOURCES.glob("*.py") if "\nimport cython\n" in p.read_text("utf-8"))


def check_headers() -> None:
    """Raises SystemExit, with the package to install, where Python's headers are missing."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    if header.exists():
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    sys.exit(
        f"{header} is missing: Peakline's kernels are compiled against Python's headers. Install "
        f"python{version}-dev (Debian, Ubuntu) or python{version}-devel (Fedora), or install a "
        f"wheel, which needs none."
    )


@cache
def compiler() -> list[str] | None:
    """The command of the C compiler; None where setuptools finds it (macOS, Windows).

    Raises SystemExit where no compiler works and ``ziglang`` has none for this platform.
    """
    if platform.system() not in {"Linux", "FreeBSD"}:
        return None
    if named := os.environ.get("CC"):
        return shlex.split(named)
    for words in (shlex.split(sysconfig.get_config_var("CC") or ""), ["cc"], ["gcc"], ["clang"]):
        if words and _works(words[:1]):
            return words[:1]
    machine = platform.system(), platform.machine()
    if machine not in _TARGETS:
        sys.exit(f"no C compiler works here ({' '.join(machine)}); install gcc, or name one in CC")
    return [sys.executable, "-m", "ziglang", "cc", "-target", _TARGETS[machine]]


def needs_zig() -> bool:
    """Whether the compiler is the one in the package ``ziglang``; raises as `compiler`."""
    return "ziglang" in (compiler() or ())


def _works(command: list[str]) -> bool:
    """Whether the compiler makes a library."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "t.c")
        source.write_text("#include <string.h>\nint f(const char *s) { return (int)strlen(s); }\n")
        words = [*command, "-shared", "-fPIC", str(source), "-o", str(Path(folder, "t.so"))]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603


def extensions() -> list[object]:
    """The extension modules, their C written; declarations that Cython needs are written first."""
    from Cython.Build import cythonize
    from setuptools import Extension

    sources = compiled_modules()
    for source in sources:
        _write_declarations(source)
    flags = [
        *_FLAGS[VARIANT],
        "-fwrapv",  # sums of signed numbers wrap, as NumPy's do
        "-fno-strict-aliasing",
    ]
    linking = []
    if VARIANT == "sanitized":
        # Wrapping is meant; and the one sanitizer must not stop what the other would find.
        flags += ["-fno-sanitize=signed-integer-overflow,shift", "-fno-sanitize-recover=all"]
        linking = ["-fsanitize=address,undefined"]
    elif needs_zig():
        flags.append("-fno-sanitize=undefined")  # on by default there
    elif platform.system() == "Linux":
        # No page of the file is filled up between code and constants: with 50 modules, 200 kB.
        linking = ["-Wl,-z,noseparate-code"]
    hexed = f"0x{OLDEST[0]:02X}{OLDEST[1]:02X}0000"
    common = {
        "define_macros": [("Py_LIMITED_API", hexed), ("CYTHON_LIMITED_API", "1")],
        "py_limited_api": True,
        "extra_compile_args": [] if platform.system() == "Windows" else flags,
        "extra_link_args": linking,
        "depends": [str(Path(__file__).relative_to(ROOT))],
    }

    def extension(name: str, source: Path) -> Extension:
        return Extension(name, [str(source.relative_to(ROOT))], **common)

    made: list[object] = cythonize(
        [
            *(extension(f"{PACKAGE}.{p.stem}", p) for p in sources),
            extension(_SHARED, SOURCES / "_shared.c"),
            *(extension(f"{PACKAGE}.{p.stem}", p) for p in _IN_C),
        ],
        build_dir=BUILD,
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=_SHARED,
        compiler_directives={
            "language_level": 3,
            "boundscheck": _CHECKS[VARIANT],
            "wraparound": False,
            "initializedcheck": _CHECKS[VARIANT],
            "cdivision": True,
            "freethreading_compatible": True,
        },
    )
    return made


def _write_declarations(module: Path) -> None:
    """Write ``NAME.pxd``: what the module imports when it is not compiled, as C knows it.

    Under ``if not cython.compiled:`` a module imports plain numbers, which become an enum, and
    functions of `peakline.kernels.bits` or of other compiled modules, which become cimports. The
    module's own C functions that others import are declared there too.
    """
    lines = ["# Written by buildtools/kernels.py."]
    numbers: list[str] = []
    for path, names in _imports(module):
        if path.with_suffix(".pxd") == SOURCES / "bits.pxd" or path in compiled_modules():
            lines.append(f"from {PACKAGE}.{path.stem} cimport {', '.join(names)}")
        else:
            values = runpy.run_path(str(path))
            numbers += [f"    {name} = {int(values[name])}" for name in names]
    if numbers:
        lines += ["cdef enum:", *numbers]
    wanted = {
        name
        for other in compiled_modules()
        for path, names in _imports(other)
        if path == module
        for name in names
    }
    tree = ast.parse(module.read_text("utf-8"))
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in wanted:
            lines.append(_declaration(function))
    text = "\n".join(lines) + "\n"
    target = module.with_suffix(".pxd")
    if len(lines) == 1:
        target.unlink(missing_ok=True)
    elif not target.exists() or target.read_text("utf-8") != text:
        target.write_text(text, "utf-8")


def _imports(module: Path) -> Iterator[tuple[Path, list[str]]]:
    """What a module imports only when it is not compiled: the file, and the names."""
    for guard in ast.parse(module.read_text("utf-8")).body:
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "not cython.compiled":
            for result in guard.body:
                if isinstance(result, ast.ImportFrom) and result.module:
                    file = ROOT / "src" / f"{result.module.replace('.', '/')}.py"
                    yield file, [name.name for name in result.names]


def _declaration(function: ast.FunctionDef) -> str:
    """The C declaration of a function that is typed in Python's syntax."""
    arguments = ", ".join(f"{_c_type(a.annotation)} {a.arg}" for a in function.args.args)
    return f"cdef {_c_type(function.returns)} {function.name}({arguments}) noexcept nogil"


_C_TYPES = {
    "uchar": "unsigned char",
    "schar": "signed char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
}


def _c_type(annotation: ast.expr | None) -> str:
    """``cython.const[cython.uchar][::1]`` as C and Cython write it."""
    if annotation is None or ast.unparse(annotation) == "None":
        return "void"
    if isinstance(annotation, ast.Attribute):
        return _C_TYPES.get(annotation.attr, annotation.attr)
    if isinstance(annotation, ast.Subscript):
        if ast.unparse(annotation.value) == "cython.const":
            return f"const {_c_type(annotation.slice)}"
        shape = ast.unparse(annotation.slice).strip("()")
        return f"{_c_type(annotation.value)}[{shape}]"
    raise SystemExit(f"{ast.unparse(annotation)} is no type that a kernel may have")
