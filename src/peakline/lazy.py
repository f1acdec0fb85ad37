"""Names of a package that import their module on first use (PEP 562), and names that moved."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["attached", "door", "listed", "moved"]

_DUNDER = re.compile(r"__\w+__")
_HOME = re.compile(r"from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def door(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package``, whose names come from the modules of ``homes``.

    A home that begins with a dot is relative to the package. Raises AttributeError for another
    name.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def attached(
    package: str, file: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of the ``package`` whose ``__init__.py`` is
    ``file``: the names that the stub beside it imports, each from its module on first use.

    The stub is what type checkers read, so that every name stands in one place, as
    ``from peakline.timing.kernels import kernel_reports as kernel_reports``.
    """
    text = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: module for module, name in _HOME.findall(text)}
    return sorted(homes), door(package, homes), listed(package)


def listed(package: str) -> Callable[[], list[str]]:
    """The ``__dir__`` of ``package``: its public names, and Python's own."""

    def names() -> list[str]:
        result = vars(sys.modules[package])
        return sorted({*result["__all__"], *(name for name in result if _DUNDER.fullmatch(name))})

    return names


def moved(old: str, homes: Mapping[str, tuple[str, str]]) -> None:
    """Let ``old`` be imported for one release: each of its names is a name of another module.

    Using one is a DeprecationWarning that says the new place.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        module, new = homes[name]
        text = f"{old}.{name} is now {module}.{new}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), new)

    module = ModuleType(old, f"Moved; {old} is there for one release.")
    module.__getattr__ = find  # type: ignore[method-assign]  # PEP 562
    sys.modules[old] = module
