"""The kernels' source, run by Python instead of a C compiler.

`install` makes every later import of ``peakline.kernels.NAME`` in this process take ``NAME.py``,
whatever is compiled beside it. Its functions get views that give Python's integers: a number that
does not fit into an array, or an index below zero or behind the end, is an error there, where
compiled code would wrap or read elsewhere.
"""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGE = "peakline.kernels"
_SOURCES = Path(__file__).parents[2] / "src" / "peakline" / "kernels"
"""The checkout's: what is installed has only what was compiled of them."""


class View:
    """What a kernel sees of an array: ``shape``, elements by index, and rows."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape
        # Python's own numbers, which do not wrap.
        self.numbers = memoryview(array)

    def _checked(self, at):
        for k, size in zip(at if isinstance(at, tuple) else (at,), self.shape, strict=False):
            if not 0 <= k < size:
                raise IndexError(f"{at} is outside of {self.shape}")
        return at

    def __getitem__(self, at):
        if isinstance(at, slice):
            return View(self.array[at])
        self._checked(at)
        if (len(at) if isinstance(at, tuple) else 1) < len(self.shape):
            return View(self.array[at])
        value = self.numbers[at]
        return value if isinstance(value, float) else int(value)

    def __setitem__(self, at, value):
        self.numbers[self._checked(at)] = bool(value) if self.numbers.format == "?" else value


def _seen(value):
    """An argument as a kernel sees it."""
    if isinstance(value, np.ndarray):
        return View(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return View(np.frombuffer(value, np.uint8))
    if isinstance(value, np.generic):
        return value.item()
    return value


class _Loader(SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        for name in getattr(module, "__all__", ()):
            function = vars(module)[name]
            if callable(function):
                vars(module)[name] = _wrapped(function)


def _wrapped(function):
    def run(*arguments, **named):
        seen = {name: _seen(value) for name, value in named.items()}
        return function(*(_seen(a) for a in arguments), **seen)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


class _Finder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name, _path=None, _target=None):
        package, _, stem = name.rpartition(".")
        source = self.folder / f"{stem}.py"
        if package != _PACKAGE or not source.exists():
            return None
        return importlib.util.spec_from_loader(name, _Loader(name, str(source)))


def install() -> None:
    """From here on kernels are imported as Python; none may have been imported yet."""
    assert not any(name.startswith(f"{_PACKAGE}.") for name in sys.modules)
    sys.meta_path.insert(0, _Finder(_SOURCES))


def load(name: str) -> Any:
    """The source of one kernel, run by Python beside the compiled ones."""
    source = _SOURCES / f"{name}.py"
    name = f"uncompiled_{name}"
    spec = importlib.util.spec_from_loader(name, _Loader(name, str(source)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
