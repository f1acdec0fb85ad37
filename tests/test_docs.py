"""A verb, flag, tool, parameter, table or column that the documentation lacks fails here."""

import doctest
import inspect
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import CodeType

import click
import pytest
from scripts.api_reference import members_of, names_of
from scripts.page_commands import blocks, lay_out

import peakline
from peakline.cli.main import app
from peakline.findings.catalogue import kinds
from peakline.tables.tables import TABLES
from peakline.tools import find_tool, tool_names
from tests.each_row import each_row

WITHOUT_EXAMPLE = {"close", "hlo_modules", "is_derived", "release", "to_pandas", "to_polars"}
_WHOLE = re.DOTALL | re.MULTILINE


def _section(page: str, title: str) -> str:
    """The part of a page under the heading ``## title``."""
    result = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert result, f"no heading {title!r}"
    return result.group(1)


def _commands():
    return [("peakline", app)] + [
        (f"peakline {name}", app.get_command(None, name)) for name in app.list_commands(None)
    ]


@pytest.fixture(scope="module")
def page(root):
    def read(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    return read


@pytest.mark.nightly  # .ci/run checks it beside the tests
def test_the_generated_pages_are_fresh(root):
    script = root / "scripts" / "generate_docs.py"
    run = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@each_row("table", TABLES.values())
def test_every_column_is_documented(page, table):
    section = _section(page("docs/tables.md"), table.name)
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|[^|]*\| (.+) \|$", section, re.MULTILINE)
    assert rows == [(column.name, column.type, column.doc) for column in table.columns]
    assert all(column.doc for column in table.columns)
    assert table.doc in section


def test_every_table_is_named_in_the_architecture(page):
    section = _section(page("docs/architecture.md"), "The tables")
    assert [name for name in TABLES if f"`{name}" not in section] == []


@each_row(("name", "command"), _commands())
def test_every_flag_is_documented(page, name, command):
    section = _section(page("docs/cli.md"), name)
    for parameter in command.params:
        assert parameter.help, f"{name}: {parameter.name} has no help"
        for spelling in [] if parameter.param_type_name == "argument" else parameter.opts:
            assert re.search(rf"`{re.escape(spelling)}[` ]", section), f"{name} {spelling}"


def test_every_verb_is_in_the_interfaces_and_the_readme(page):
    interfaces = _section(page("docs/interfaces.md"), "Command line")
    readme = page("README.md")
    for name, _ in _commands()[1:]:
        assert f"`{name}" in interfaces, name
        assert f"`{name.removeprefix('peakline ')}`" in readme, name


@each_row("name", kinds())
def test_every_kind_of_finding_has_a_section(page, name):
    result = re.search(rf"^### `{name}`\n(.*?)(?=^##|^# |\Z)", page("docs/findings.md"), _WHOLE)
    assert result, f"no section about {name}"
    assert re.search(r"^> \S", result.group(1), re.MULTILINE), "no example"
    bullets = re.findall(r"^- \*\*(\w+)\*\*: ", result.group(1), re.MULTILINE)
    assert bullets == ["From", "Silent", "TensorFlow", "JAX", "PyTorch"]


@each_row("name", tool_names())
def test_every_tool_parameter_and_format_is_documented(page, name):
    tool = find_tool(name)
    section = _section(page("docs/tools.md"), name)
    for parameter, declared in tool.parameters.declared().items():
        assert declared.description, f"{name}: {parameter} has no description"
        assert f"| `{parameter}` |" in section, parameter
    assert all(f"`{kind}`" in section for kind in tool.formats)


def test_the_memory_profile_page_names_every_parameter(page):
    text = page("docs/memory-profile.md")
    assert [
        p for p in find_tool("memory_profile").parameters.declared() if f"`{p}`" not in text
    ] == []


def test_every_row_of_the_threat_model_names_what_tries_it(page, root):
    section = _section(page("docs/serve.md"), "Threat model")
    rows = re.findall(r"^\| (?!who \| may|---)(.*) \|$", section, re.MULTILINE)
    tried = [re.findall(r"`(tests/[^`]+)`", row.rpartition(" | ")[2]) for row in rows]
    assert len(rows) >= 8
    assert [row for row, files in zip(rows, tried, strict=True) if not files] == []
    assert [file for files in tried for file in files if not (root / file).is_file()] == []


def _texts_of_the_product():
    """All texts in the package but docstrings and comments: what screens and documents say."""
    package = Path(peakline.__file__).parent
    for path in sorted(package.rglob("*.py")):
        # Without docstrings: so optimized, Python leaves them out.
        yield from _texts_of(compile(path.read_text("utf-8"), str(path), "exec", optimize=2))
    for path in sorted([*package.rglob("static/js/**/*.js"), *package.rglob("views/*.sql")]):
        yield re.sub(r"/\*.*?\*/|^ *//.*?$", "", path.read_text("utf-8"), flags=_WHOLE)


def _texts_of(constant):
    if isinstance(constant, CodeType):
        constant = constant.co_consts
    if isinstance(constant, str):
        yield constant
    elif isinstance(constant, tuple | frozenset):
        for one in constant:
            yield from _texts_of(one)


def test_a_word_of_the_glossary_is_used_and_linked(page):
    rows = re.findall(r"^\| (.+?) \| .+ \| (.+) \|$", page("docs/glossary.md"), re.MULTILINE)
    rows = [row for row in rows if row != ("word", "more")]
    assert len(rows) > 40
    assert [word for word, more in rows if not re.search(r"\]\([\w/-]+\.md", more)] == []
    said = f" {_words(' '.join(_texts_of_the_product()))} "
    terms = [
        term
        for row, _ in rows
        for term in ([row] if row == "idle, cause unknown" else row.split(", "))
    ]
    assert [term for term in terms if f" {_words(term)} " not in said] == []


def _words(text):
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def test_links_between_pages_lead_somewhere(root):
    pages = [
        *root.glob("*.md"),
        *root.glob("docs/*.md"),
        *root.glob("requirements/*.md"),
        *root.glob("tests/data/*.md"),
    ]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_who_runs_a_command_of_the_docs_exists(root):
    notes = [
        note
        for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
        for note in re.findall(
            r"^<!-- ((?:run by|not run:?) [^\n]*) -->$", page.read_text("utf-8"), re.MULTILINE
        )
    ]
    assert len(notes) > 5
    tests = [note.removeprefix("run by ") for note in notes if note.startswith("run by ")]
    assert [test for test in tests if not (root / test).is_file()] == []
    assert {note for note in notes if note.startswith("not run")} == {
        "not run: it needs Docker",
        "not run: it needs a GPU",
        "not run: it needs a model and a GPU",
        "not run: it installs from an index",
        "not run: the name is not published yet",
        "not run: the program is yours",
    }


_PROGRAMS = "peakline|python3?|pip3?|pipx|uvx?|pytest|make|curl|grpcurl|docker|git|ssh"
_COMMAND = re.compile(rf" *(?:\$ )?(?:\w+=\S+ +)*(?:{_PROGRAMS}) +\S")


def _lines(root):
    """Every line of a page that stands in a block, with the page and what the block is."""
    for path in [*root.glob("*.md"), *sorted((root / "docs").rglob("*.md"))]:
        fence = None
        for line in path.read_text("utf-8").splitlines():
            result = re.match(r" *```(\w*)", line)
            if result:
                fence = result[1] if fence is None else None
            elif fence is not None or line.startswith("    "):
                yield path.name, line, fence


def test_a_command_stands_in_a_block_that_is_run(root):
    usages = {
        f"    {command.get_usage(click.Context(command, info_name=name)).partition(': ')[2]}"
        for name, command in _commands()
    }
    lines = [
        (page, line)
        for page, line, kind in _lines(root)
        if kind not in ("sh", "text", "yaml", "ini", "python") and _COMMAND.match(line)
    ]
    assert [f"{page}: {line}" for page, line in lines if line not in usages] == []
    assert {*usages} - {line for page, line in lines if page == "cli.md"} == set()
    kinds = {kind for _, _, kind in _lines(root) if kind}
    assert kinds <= {"sh", "text", "yaml", "ini", "python", "sql", "toml", "json", "js", "hex"}


def test_what_a_page_shows_of_a_terminal_is_what_its_last_command_printed(root):
    generated = {"api.md", "sql.md"}  # signatures, and what its queries answer
    alone = []
    for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = "" if path.name in generated else path.read_text("utf-8")
        printed = re.findall(r"(?<=^```text\n).*", text, re.MULTILINE)
        result = [one.printed.partition("\n")[0] for one in blocks(text) if one.printed is not None]
        alone += [f"{path.name}: {line}" for line in printed if line not in result]
    assert alone == []


def test_a_command_that_is_not_run_here_has_the_options_of_its_verb(root):
    verbs = {name.removeprefix("peakline "): verb for name, verb in _commands()}
    wrong, seen = [], set()
    for path in [*root.glob("*.md"), *sorted((root / "docs").rglob("*.md"))]:
        text = path.read_text("utf-8")
        elsewhere = "".join(block.script for block in blocks(text) if block.elsewhere)
        commands = [
            *re.findall(r"`peakline ([^`]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=_WHOLE)),
            *re.findall(r"(?:^|\| )peakline ([^|#\n]+)", elsewhere, re.MULTILINE),
        ]
        for command in commands:
            name = command.split()[0]
            verb = verbs.get(name, app)
            seen.add(name)
            known = {spelling for one in verb.params for spelling in one.opts} | {"--help"}
            given = re.findall(r"(?:^|(?<=\s))--?[a-z][\w-]*", command)
            if unknown := {*given} - known:
                wrong.append(f"{path.name}: {command}: {unknown}")
            elif name not in {*verbs, "logs"} and re.fullmatch("[a-z]+", name):
                wrong.append(f"{path.name}: {command}")
    assert wrong == []
    assert len(seen & {*verbs}) > 15


def test_the_python_of_the_readme_runs(page, tmp_path, monkeypatch):
    (code,) = re.findall(r"^```python\n(.*?)^```", page("README.md"), _WHOLE)
    lay_out(tmp_path / "job")
    monkeypatch.chdir(tmp_path / "job")
    names = {}
    exec(code, names)  # noqa: S102  (our own page)
    with names["profile"] as profile:
        assert repr(profile.memory().allocators[0]).startswith("<AllocatorPeak bfc_cpu_allocator")


def _imports(root):
    """Every import line of a Python example, with the page that has it."""
    # Whoever changes kernels is told of modules that nobody else imports.
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if page.name == "kernels.md":
            continue
        for block in re.findall(
            r"^ *```(?:python|py|sh)\n(.*?)^ *```", page.read_text("utf-8"), _WHOLE
        ):
            for line in re.findall(r"^ *((?:from|import) peakline.*)$", block, re.MULTILINE):
                yield page.name, line


def test_every_import_of_the_docs_works_and_is_of_a_public_place(root, page):
    lines = sorted(set(_imports(root)))
    assert len(lines) > 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _, line in lines:
            exec(line, {})  # noqa: S102  (the line of our own page)
    places = set(re.findall(r"^- \[`([\w.]+)`\]", page("docs/api.md"), re.MULTILINE))
    assert {"peakline", "peakline.figures"} <= places
    private = []
    for name, line in lines:
        result = re.fullmatch(r"from ([\w.]+) import (.*)|import ([\w.]+)(?: as \w+)?", line)
        place, names = result[1] or result[3], (result[2] or "").split(", ")
        modules = {place, *(f"{place}.{one}" for one in names)} if place == "peakline" else {place}
        listed = import_module(place).__all__
        is_public = all(one in listed or f"{place}.{one}" in places for one in names if one)
        private += [] if modules & places and is_public else [f"{name}: {line}"]
    assert private == []


def test_every_public_function_has_an_example_that_is_true(tmp_path, monkeypatch):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    places = {"peakline.api", "peakline.tables.profile", "peakline.tools.timeline.reader"}
    with peakline.open("leak.xplane.pb") as profile:
        names = {"peakline": peakline, "profile": profile}
        names["session"] = peakline.Repository("logs").sessions()[0]
        for module in map(import_module, places):
            result = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
            assert result.attempted, module
            assert not result.failed, module
    for place in (peakline, peakline.Profile, peakline.Repository, peakline.Session):
        public = names_of("peakline") if place is peakline else members_of(place)
        for value in (inspect.getattr_static(place, name) for name in public):
            if inspect.isfunction(value) and value.__name__ not in WITHOUT_EXAMPLE:
                assert ">>> " in value.__doc__, value
