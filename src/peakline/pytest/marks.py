"""What the marks and the settings of a test set."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from peakline.errors import UsageError
from peakline.text import parse_size

if TYPE_CHECKING:
    import pytest

PEAK, GROWTH = "limit_device_memory", "limit_growth_per_step"
PROGRAM = "limit_program_memory"
BASELINE = "peakline"
LIMITS = (PEAK, GROWTH, PROGRAM, BASELINE)
MARKS = {
    f"{PEAK}(size, *, allocator=None, framework=None)": "profile the test, and fail it when more "
    "device memory than size ('512MB', '1.5GiB', or bytes) was in use at a time.",
    f"{GROWTH}(size, *, allocator=None, framework=None)": "profile the test, and fail it when "
    "every step leaves more than size; the fixture peakline_profile says what a step is.",
    f"{PROGRAM}(size, *, framework=None)": "profile the test, and fail it when one of the compiled "
    "programs that ran needs more device memory than size.",
    f"{BASELINE}(*, baseline=True, tolerance=None, framework=None)": "profile the test, and fail "
    "it when it takes more device memory than its runs in the file of --peakline-baseline, by more "
    "than their noise explains, or than tolerance ('5%').",
}
FRAMEWORKS = ("jax", "tensorflow", "torch")
_TITLES = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}


@dataclass(frozen=True)
class Wanted:
    """The limits of one test in bytes, None without; ``peak_of`` and ``growth_of`` are the
    allocators they are for, None for every one. ``framework`` is the one that a mark names.
    """

    peak_bytes: int | None = None
    growth_bytes: int | None = None
    program_bytes: int | None = None
    peak_of: str | None = None
    growth_of: str | None = None
    framework: str | None = None
    baseline: bool = False
    tolerance: object = None

    @property
    def is_limit(self) -> bool:
        """Whether there is a limit."""
        return (
            self.baseline or (self.peak_bytes, self.growth_bytes, self.program_bytes) != (None,) * 3
        )


def wanted_by(item: pytest.Item) -> Wanted:
    """The limits of ``item``; of several marks of a kind the closest counts.

    Raises UsageError for wrong arguments.
    """
    peak, peak_of, one = _read(item, PEAK)
    growth, growth_of, other = _read(item, GROWTH)
    program, _, third = _read(item, PROGRAM, options=("framework",))
    baseline, tolerance, fourth = _read_baseline(item)
    named = list(dict.fromkeys(name for name in (one, other, third, fourth) if name))
    if len(named) > 1:
        raise UsageError(f"the marks name two frameworks, {' and '.join(named)}; a test has one")
    return Wanted(
        peak, growth, program, peak_of, growth_of, named[0] if named else None, baseline, tolerance
    )


def choose_framework(wanted: Wanted, setting: str, module: object = None) -> str:
    """The framework to profile with: the mark's, else the setting's, else the one imported.

    What the test's ``module`` itself imports goes before what others have imported: TensorFlow
    imports JAX where that is installed. Raises UsageError where there is none, or several.
    """
    named = wanted.framework or setting
    if named:
        return _framework(named)
    used = {_root(value) for value in getattr(module, "__dict__", {}).values()}
    known = [name for name in FRAMEWORKS if name in used]
    known = known or [name for name in FRAMEWORKS if name in sys.modules]
    if len(known) == 1:
        return known[0]
    result = (
        f"{' and '.join(_TITLES[name] for name in known)} are imported"
        if known
        else "neither JAX, TensorFlow nor PyTorch is imported before the test begins"
    )
    raise UsageError(
        f"{result}: name the one to profile with, framework='jax', 'tensorflow' or 'torch' in the "
        "mark or peakline_framework in pytest's settings"
    )


def _root(value: object) -> str:
    """The package that a name of a module comes from."""
    try:
        home = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", "")
    except Exception:  # noqa: BLE001 (any object may be in a module, with attributes of its own)
        return ""
    return home.partition(".")[0] if isinstance(home, str) else ""


def _read(
    item: pytest.Item, name: str, options: tuple[str, ...] = ("allocator", "framework")
) -> tuple[int | None, str | None, str | None]:
    mark = item.get_closest_marker(name)
    if mark is None:
        return None, None, None
    unknown = sorted(set(mark.kwargs) - {"size", *options})
    sizes = [*mark.args, *(mark.kwargs[key] for key in ("size",) if key in mark.kwargs)]
    if unknown or len(sizes) != 1:
        problem = f"no argument {unknown[0]!r}" if unknown else f"one size, not {len(sizes)}"
        takes = "".join(f", {option}=None" for option in options)
        raise UsageError(f"{name} takes (size, *{takes}): {problem}")
    allocator, framework = mark.kwargs.get("allocator"), mark.kwargs.get("framework")
    if allocator is not None and not isinstance(allocator, str):
        raise UsageError(f"{name}: allocator is a name, not {allocator!r}")
    if framework is not None:
        framework = _framework(framework)
    return _bytes(name, sizes[0]), allocator, framework


def _read_baseline(item: pytest.Item) -> tuple[bool, object, str | None]:
    """What the mark `BASELINE` says: whether to compare, the tolerance, the framework."""
    mark = item.get_closest_marker(BASELINE)
    if mark is None:
        return False, None, None
    unknown = sorted(set(mark.kwargs) - {"baseline", "tolerance", "framework"})
    if unknown or mark.args:
        problem = f"no argument {unknown[0]!r}" if unknown else "all of them by name"
        raise UsageError(
            f"{BASELINE} takes (*, baseline=True, tolerance=None, framework=None): {problem}"
        )
    framework = mark.kwargs.get("framework")
    return (
        bool(mark.kwargs.get("baseline", True)),
        mark.kwargs.get("tolerance"),
        None if framework is None else _framework(framework),
    )


def _framework(name: object) -> str:
    if name not in FRAMEWORKS:
        raise UsageError(f"no framework {name!r}; there is: {', '.join(FRAMEWORKS)}")
    return str(name)


def _bytes(name: str, size: object) -> int:
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    if isinstance(size, str):
        with contextlib.suppress(UsageError):
            return parse_size(size)
    raise UsageError(f"{name}: {size!r} is no size; write '10MB', '64KiB', '1.5GiB' or bytes")
