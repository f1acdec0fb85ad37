"""The contracts of docs/architecture.md that the import linter cannot say."""

import ast
import re
import sys
import tokenize
from importlib import import_module
from pathlib import Path

import grimp

from peakline.cli.main import app
from peakline.export.registry import target_names
from peakline.formats.common.format import formats
from peakline.tables.derived import DERIVED
from peakline.tables.tables import TABLES
from peakline.tools import find_tool, tool_names

PACKAGE = Path(__file__).parents[2] / "src" / "peakline"
MOST_LINES = 950
DIALECT = frozenset("asked course gathered kept looks tell tells told ways words".split())
"""Words of a dialect of our own: docs/glossary.md has the field's."""
IN_TEXTS = re.compile(r"\b(told|tells?|asked|gathered)\b")


def _modules(room: str) -> set[str]:
    """The names of the modules and folders of a room."""
    return {
        entry.name.removesuffix(".py")
        for entry in (PACKAGE / room).iterdir()
        if entry.name.removesuffix(".py").isidentifier() and not entry.name.startswith("_")
    }


def _sources():
    return sorted(PACKAGE.rglob("*.py"))


def test_no_module_imports_itself_by_way_of_others(monkeypatch):
    # The checkout's: what is installed lacks the kernels' source.
    monkeypatch.delitem(sys.modules, "peakline")
    monkeypatch.syspath_prepend(PACKAGE.parent)
    graph = grimp.build_graph("peakline", exclude_type_checking_imports=True, cache_dir=None)
    assert len([name for name in graph.modules if name.startswith("peakline.kernels.")]) > 40
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    cycles: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        waiting.append(module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in order:
                visit(imported)
                low[module] = min(low[module], low[imported])
            elif imported in waiting:
                low[module] = min(low[module], order[imported])
        if low[module] == order[module]:
            place = waiting.index(module)
            cycle = waiting[place:]
            del waiting[place:]
            if len(cycle) > 1:
                cycles.append(sorted(cycle))

    for module in sorted(graph.modules):
        if module not in order:
            visit(module)
    assert cycles == []


class TestNames:
    """What a stranger looks for is where its name is."""

    def test_a_verb_is_a_file(self):
        shared = {"completion", "main", "options", "verb", "exit_codes", "progress", "shells"}
        assert _modules("cli") == {*app.list_commands(None), *shared}

    def test_a_tool_is_a_file_or_folder(self):
        assert _modules("xprof") - {"rules"} | _modules("tools") == {
            name.replace("@", "_at") for name in tool_names()
        }
        assert [name for name in tool_names() if find_tool(name).name != name] == []

    def test_a_format_is_a_file_or_folder(self):
        assert _modules("formats") - {"common"} == set(formats())
        assert [name for name, form in formats().items() if form.name != name] == []

    def test_a_target_of_export_is_a_file(self):
        assert {name.replace("-", "_") for name in target_names()} <= _modules("export")

    def test_a_table_that_is_made_of_others_is_a_file(self):
        made = {*DERIVED} - {"events"}
        assert made <= {*TABLES}
        rooms = {name: room for room in ("memory", "timing", "hlo") for name in _modules(room)}
        assert made <= {*rooms}
        for name in made:
            room = rooms[name]
            assert callable(import_module(f"peakline.{room}.{name}").columns_of)


def test_no_room_above_the_formats_asks_for_a_format_by_name():
    names = "|".join(formats())
    compared = re.compile(rf"""format\s*(==|!=|in|not in)\s*[({{]?\s*["']({names})["']""")
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in _sources()
        if not path.relative_to(PACKAGE).is_relative_to("formats")
        for line in path.read_text(encoding="utf-8").splitlines()
        if compared.search(line)
    ]
    assert found == []


def test_what_is_made_once_for_a_profile_has_no_text_for_a_name():
    found = [path.name for path in _sources() if re.search(r"\.keep\(\s*f?[\"']", path.read_text())]
    assert found == []


def test_what_is_declared_to_hold_memory_exists():
    base, found = (PACKAGE / "formats/common/reader.py").read_text(encoding="utf-8"), []
    for path in _sources():
        code = path.read_text(encoding="utf-8")
        for names in re.findall(r"__retained__ = [(\"](.*?)[)\"]\n", code, re.DOTALL):
            for name in re.findall(r"\w+", names):
                held = re.search(rf"(self\.|def |\n +){name}\b", base + code)
                found += [] if held else [f"{path.name}: {name}"]
    assert found == []


def test_no_flag_of_xprof_goes_through_what_is_ours():
    found = []
    for room in ("trace", "hlo", "memory", "timing", "graph", "tfprof", "viewer", "tools"):
        for path in (PACKAGE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    names = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
                    flags = {"compatible", "strict", "as_xprof"} & {*names}
                    found += [f"{room}/{path.name}: {node.name}({flag})" for flag in flags]
    assert found == []


def test_a_module_is_read_in_one_sitting():
    long = {
        str(path.relative_to(PACKAGE))
        for path in _sources()
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    }
    # One automaton of protobuf's text format.
    assert long == {"kernels/text_scan.py"}


def test_files_functions_and_classes_are_named_in_the_terms_of_the_field():
    found = []
    for path in _sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [path.stem] + [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        for name in names:
            words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name.replace("_", " "))
            found += [f"{path.name}: {name}"] if {w.lower() for w in words} & DIALECT else []
    assert found == []


def test_texts_and_comments_are_written_in_the_terms_of_the_field():
    found = []
    for path in _sources():
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in {tokenize.STRING, tokenize.COMMENT}:
                    # Without what an f-string names.
                    text = re.sub(r"\{[^{}]*\}", "", token.string)
                    found += [f"{path.name}: {text}"] if IN_TEXTS.search(text) else []
    assert [one.partition(":")[0] for one in found] == ["bottleneck.py"]  # a sentence of XProf's
