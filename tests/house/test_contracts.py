"""The contracts of docs/architecture.md that the import linter cannot say."""

import ast
import re
import sys
import tokenize
from functools import cache
from importlib import import_module
from pathlib import Path

import grimp

from peakline.cli.main import app
from peakline.export.registry import target_names
from peakline.formats.common.format import formats
from peakline.tables.derived import DERIVED
from peakline.tables.tables import TABLES
from peakline.tools import find_tool, tool_names

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "peakline"
DIALECT = frozenset("asked course gathered kept looks tell tells told ways words".split())
"""Words of a dialect of our own: docs/glossary.md has the field's."""
NOT_NAMES = frozenset("asked found gathered kept told".split())
"""What a variable holds is a result, an answer, a choice: these say how it came there."""
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


@cache
def _definitions(path: Path) -> list[tuple[type[ast.AST], str, set[str]]]:
    """Functions and classes of a file: what each is, its name, and its arguments' names."""
    return [
        (type(node), node.name, {arg.arg for arg in (*args.args, *args.kwonlyargs)})
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for args in [getattr(node, "args", ast.arguments(args=[], kwonlyargs=[]))]
    ]


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
        shared = {"completion", "main", "options", "verb", "progress", "ranks"}
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
    result = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in _sources()
        if not path.relative_to(PACKAGE).is_relative_to("formats")
        for line in path.read_text(encoding="utf-8").splitlines()
        if compared.search(line)
    ]
    assert result == []


def test_no_room_above_the_formats_chooses_by_who_wrote_a_profile():
    """What a format's events are it declares (`EventRules`): see `test_additions` for a third."""
    flags = re.compile(r"\bhas_categories\b|\bhas_runtime_planes\b")
    vendors = re.compile(r"kineto|xspace|xplane|chrome_trace|nsys|rocm", re.IGNORECASE)
    # Below the formats, and what checks that the answer to a capture is the message it must be.
    exempt = {"formats", "kernels", "schema", "record", "wire", "demo", "capture"}
    result = []
    for path in _sources():
        place = path.relative_to(PACKAGE)
        text = path.read_text(encoding="utf-8")
        result += [f"{place}: {flag}" for flag in flags.findall(text)]
        if place.parts[0] in exempt:
            continue
        functions = [name for kind, name, _ in _definitions(path) if kind is ast.FunctionDef]
        result += [f"{place}: {name}" for name in functions if vendors.search(name)]
    assert result == []


def test_what_is_made_once_for_a_profile_has_no_text_for_a_name():
    result = [
        path.name for path in _sources() if re.search(r"\.keep\(\s*f?[\"']", path.read_text())
    ]
    assert result == []


def test_what_is_declared_to_hold_memory_exists():
    base, result = (PACKAGE / "formats/common/reader.py").read_text(encoding="utf-8"), []
    for path in _sources():
        code = path.read_text(encoding="utf-8")
        for names in re.findall(r"__retained__ = [(\"](.*?)[)\"]\n", code, re.DOTALL):
            for name in re.findall(r"\w+", names):
                held = re.search(rf"(self\.|def |\n +){name}\b", base + code)
                result += [] if held else [f"{path.name}: {name}"]
    assert result == []


def test_no_flag_of_xprof_goes_through_what_is_ours():
    result = []
    for room in ("trace", "hlo", "memory", "timing", "graph", "tfprof", "viewer", "tools"):
        for path in (PACKAGE / room).rglob("*.py"):
            for _, name, arguments in _definitions(path):
                flags = {"compatible", "strict", "as_xprof"} & arguments
                result += [f"{room}/{path.name}: {name}({flag})" for flag in flags]
    assert result == []


def test_files_functions_and_classes_are_named_in_the_terms_of_the_field():
    result = []
    for path in _sources():
        for name in (path.stem, *(name for _, name, _ in _definitions(path))):
            words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name.replace("_", " "))
            result += [f"{path.name}: {name}"] if {w.lower() for w in words} & DIALECT else []
    assert result == []


def test_variables_are_named_in_the_terms_of_the_field():
    result, word = [], rf"\b(?:{'|'.join(sorted(NOT_NAMES))})\b"
    for path in (*_sources(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")):
        # To read a file as text takes a tenth of what parsing takes.
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(rf"{word}[^\n]*[=:]", text) else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                result += [f"{path.name}:{node.lineno}: {node.id}"] if node.id in NOT_NAMES else []
    for path in (PACKAGE / "web" / "static" / "js").rglob("*.js"):
        names = re.findall(rf"\b(?:const|let|function) {word}", path.read_text(encoding="utf-8"))
        result += [f"{path.name}: {name}" for name in names]
    assert result == []


def test_texts_and_comments_are_written_in_the_terms_of_the_field():
    result = []
    for path in _sources():
        if not IN_TEXTS.search(path.read_text(encoding="utf-8")):
            continue
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in {tokenize.STRING, tokenize.COMMENT}:
                    # Without what an f-string names.
                    text = re.sub(r"\{[^{}]*\}", "", token.string)
                    result += [f"{path.name}: {text}"] if IN_TEXTS.search(text) else []
    assert [one.partition(":")[0] for one in result] == ["bottleneck.py"]  # a sentence of XProf's


def test_the_json_of_an_answer_is_made_where_its_document_is():
    result = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for room in ("cli", "render/terminal")
        for path in sorted((PACKAGE / room).glob("*.py"))
        for kind, name, _ in _definitions(path)
        if kind is ast.FunctionDef and name.endswith("_document")
    ]
    assert result == []


MOST_DECIDING = 20
LAYOUT = {
    # How wide, long or deep text and pictures are, how often a screen is drawn again, how long and
    # how much a page or a cell may be.
    "terminal": "_SHORTEST_TAIL _WORTH _ROUNDS PROSE INDENT _USUAL _LEAST _PER_SECOND _BAR "
    "_LEAST_STATE _NAME _TEXT _WHOLE _SHARE _LABEL _LEAST_NAME _UNITS _STEPS _DEEPEST",
    "html": "MOST_BYTES _LONGEST _LEAST _ROOM FONT SMALL _TOP _BOTTOM _RIGHT _TITLE _NARROW "
    "_ROWS_SHARE _FONT _EDGE _GAP WIDE NARROW _SHORT _BAR _HIGH _SHADES",
    "notebook": "_SECONDS _MOST _WIDTH _HEIGHT _LONGEST _TEXT",
}
"""Constants of the faces that decide how what is shown looks, not what is shown."""


def _deciding_numbers(room: str) -> list[str]:
    """Numbers of a face that decide which rows, figures and sentences appear: constants of its
    modules but for those of `LAYOUT`, and numbers other than 0 and 1 in comparisons, in slices and
    in arguments called ``most``, ``limit``, ``least`` or ``top``.
    """

    def is_number(node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) in {int, float}

    layout, result = set(LAYOUT[room].split()), []
    for path in sorted((PACKAGE / "render" / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Dict | ast.Call):
                names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - layout
                numbers = [one for one in ast.walk(node.value) if is_number(one)]
                result += [f"{path.name}: {name}" for name in sorted(names) if numbers]
        for node in ast.walk(tree):
            parts: list[ast.AST | None] = []
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
            elif isinstance(node, ast.Slice):
                parts = [node.lower, node.upper]
            elif isinstance(node, ast.keyword) and node.arg in {"most", "limit", "least", "top"}:
                parts = [node.value]
            result += [
                f"{path.name}:{part.lineno}: {part.value}"
                for part in parts
                if part is not None and is_number(part) and part.value not in {0, 1}
            ]
    return result


def test_what_decides_what_is_shown_stands_in_documents():
    result = [one for room in LAYOUT for one in _deciding_numbers(room)]
    assert len(result) <= MOST_DECIDING, result


_JS_NAMES = re.compile(
    r"\b(?:const|let|function|class|get|set)\s+([A-Za-z_$][\w$]*)"  # what is declared
    r"|[({,]\s*([A-Za-z_$][\w$]*)\s*(?=[,)}=])"  # a parameter, a part of a pattern
    r"|#([A-Za-z_]\w*)\s*[(=;]"  # a private member
)


def test_the_page_names_things_in_the_terms_of_the_field():
    result = []
    for path in sorted((PACKAGE / "web" / "static" / "js").rglob("*.js")):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for match in _JS_NAMES.finditer(code):
            name = next(filter(None, match.groups()))
            words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name.replace("_", " "))
            result += [f"{path.name}: {name}"] if {w.lower() for w in words} & DIALECT else []
    assert result == []
