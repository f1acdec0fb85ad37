"""Holds the package to its budgets: ``check_house.py [--list] [--lower]``.

Prints the figures of `scripts/house.toml` beside its limits and fails where one is above its own.
``--list`` names the small modules and the circles. ``--lower`` writes the present figure wherever
it is below the limit; a limit is raised by hand, in the commit that says why.

- lines: those of a room, or of the tests, without blank lines and docstrings. Of the tests without
  what records (programs, recorders) and data.
- files: the modules of the package.
- source_lines, test_lines: all lines of the package, and of the tests.
- small_modules: modules with one importer and fewer than `SMALL` lines. A verb, tool, format, kind
  of finding, target of an export and a derived table is a file of its name, however small.
- imports_in_functions: statements in functions that import modules of the package. Laziness stands
  at the door of a room (``__getattr__``), where it can be followed.
- circles: groups of modules that import each other, those of ``if TYPE_CHECKING`` counted.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "peakline"
BUDGET = ROOT / "scripts" / "house.toml"
SMALL = 60
OF_ITS_NAME = frozenset(
    f"peakline.{room}" for room in "cli tools xprof formats export findings.kinds".split()
)
"""Rooms in which a file is what its name says, listed by the folder and not by imports."""
RECORDERS = re.compile(r"/programs/|/data/|/record(er)?s?\.py$|/conformance/peers/")
"""What tests are made with, and is no test."""

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Figures = dict[str, dict[str, int]]


@dataclass
class Module:
    """One file: its lines, what it imports and how often in functions."""

    path: Path
    tree: ast.Module
    lines: int
    imports: set[str] = field(default_factory=set)
    in_functions: int = 0


def counted_lines(text: str, tree: ast.Module) -> int:
    """The lines of ``text`` that are neither blank nor of a docstring."""
    docstrings: set[int] = set()
    for node in (tree, *(node for node, _ in _statements(tree))):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        1
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and number not in docstrings
    )


def read_modules() -> dict[str, Module]:
    """The modules of the package by full name, with what each imports of the package."""
    modules: dict[str, Module] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(path, tree, counted_lines(text, tree))
    for module in modules.values():
        for node, is_in_function in _imports(module.tree):
            imported = {name for name in _names(node, modules) if name in modules}
            module.imports |= imported
            module.in_functions += bool(imported) and is_in_function
        # What the door of a room gives stands in its stub (`peakline.lazy.attached`).
        stub = module.path.with_suffix(".pyi")
        for node, _ in _imports(ast.parse(stub.read_text("utf-8"))) if stub.exists() else ():
            module.imports |= {name for name in _names(node, modules) if name in modules}
    return modules


def _statements(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements of ``tree``, and whether each is in a function. Expressions have none."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(tree, name, ()):
            if isinstance(node, ast.stmt):
                yield node, inside
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _statements(node, inside=inside or is_function)


def _imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, bool]]:
    return (
        (node, inside)
        for node, inside in _statements(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def _names(node: ast.stmt, modules: Mapping[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules else node.module


def circles(modules: Mapping[str, Module]) -> list[list[str]]:
    """Groups of modules each of which imports itself by way of the others (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    result: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        waiting.append(name)
        for imported in sorted(modules[name].imports):
            if imported not in order:
                visit(imported)
                low[name] = min(low[name], low[imported])
            elif imported in waiting:
                low[name] = min(low[name], order[imported])
        if low[name] == order[name]:
            place = waiting.index(name)
            group = waiting[place:]
            del waiting[place:]
            if len(group) > 1:
                result.append(sorted(group))

    for name in modules:
        if name not in order:
            visit(name)
    return result


def small_modules(modules: Mapping[str, Module]) -> list[str]:
    """Modules with one importer and few lines, that are not found by their names."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name, module in modules.items():
        for imported in module.imports:
            importers[imported].add(name)
    return [
        name
        for name, module in modules.items()
        if len(importers[name]) == 1
        and module.lines < SMALL
        and module.path.name != "__init__.py"
        and name.rpartition(".")[0] not in OF_ITS_NAME
        and not any(getattr(node, "name", "") == "columns_of" for node in module.tree.body)
    ]


def test_texts() -> list[str]:
    """The texts of all tests, without what records and data."""
    return [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if not RECORDERS.search(f"/{path.relative_to(ROOT).as_posix()}")
    ]


def figures(modules: Mapping[str, Module]) -> Figures:
    """What `scripts/house.toml` limits, as it is now."""
    rooms: Counter[str] = Counter()
    for name, module in modules.items():
        is_alone = module.path.parent == PACKAGE
        rooms["peakline" if is_alone else name.split(".")[1]] += module.lines
    tests = test_texts()
    rooms["tests"] = sum(counted_lines(text, ast.parse(text)) for text in tests)
    sources = [module.path.read_text(encoding="utf-8") for module in modules.values()]
    return {
        "lines": dict(sorted(rooms.items())),
        "house": {
            "files": len(modules),
            "source_lines": sum(text.count("\n") for text in sources),
            "test_lines": sum(text.count("\n") for text in tests),
            "small_modules": len(small_modules(modules)),
            "imports_in_functions": sum(module.in_functions for module in modules.values()),
            "circles": len(circles(modules)),
        },
    }


def written(limits: Figures) -> str:
    """The text of `scripts/house.toml`."""
    text = "# What scripts/check_house.py holds the package to.\n"
    text += "# A limit rises only in the commit that says why.\n"
    for part, entries in limits.items():
        text += f"\n[{part}]\n" + "".join(f"{name} = {most}\n" for name, most in entries.items())
    return text


def main() -> int:
    """Print the figures; 1 where one is above its limit."""
    modules = read_modules()
    now = figures(modules)
    limits: Figures = tomllib.loads(BUDGET.read_text("utf-8")) if BUDGET.exists() else {}
    above = []
    for part, entries in now.items():
        for name, figure in entries.items():
            most = limits.get(part, {}).get(name)
            print(f"{part:6} {name:22} {figure:7,}  of {'none' if most is None else f'{most:,}'}")
            if most is None or figure > most:
                above.append(f"{part}.{name} is {figure}, its limit {most}")
    if "--list" in sys.argv:
        print(*(f"small module: {name}" for name in small_modules(modules)), sep="\n")
        print(*(f"circle: {', '.join(group)}" for group in circles(modules)), sep="\n")
    if "--lower" in sys.argv:
        lowered = {
            part: {
                name: min(figure, limits.get(part, {}).get(name, figure))
                for name, figure in entries.items()
            }
            for part, entries in now.items()
        }
        BUDGET.write_text(written(lowered), encoding="utf-8")
    print(*(f"over the budget: {line}" for line in above), sep="\n", end="\n" if above else "")
    return 1 if above and "--lower" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
