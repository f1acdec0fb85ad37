"""The files of the page: what there is, and that it fits together."""

import os
import re
from importlib.resources import files
from pathlib import Path, PurePosixPath

from tests.each_row import each_row

from peakline.web import PageFile, content_policy, page_files, session_address

STARTS = ("/assets/js/first.js", "/assets/js/main.js")
WORKER = "/assets/js/views/graph/layout_worker.js"
_IMPORT = re.compile(r"""(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)["']([^"']+)["']""", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*$", re.DOTALL | re.MULTILINE)


def modules() -> dict[str, str]:
    """The text of every module of ours, without comments (types in them import as well)."""
    return {
        path: _COMMENT.sub("", file.place.read_text(encoding="utf-8"))
        for path, file in page_files().items()
        if path.endswith(".js")
    }


def imported(path: str, text: str) -> set[str]:
    return {os.path.normpath(PurePosixPath(path).parent / name) for name in _IMPORT.findall(text)}


def test_every_file_of_the_checkout_is_installed_and_served(root):
    static = root / "src" / "peakline" / "web" / "static"
    wanted = {path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()}
    served = {
        "index.html" if path == "/" else path.removeprefix("/assets/") for path in page_files()
    }
    assert served == wanted
    installed = Path(str(files("peakline"))) / "web" / "static"
    for name in wanted:
        assert (installed / name).read_bytes() == (static / name).read_bytes(), name


def test_modules_import_what_is_there():
    served = set(page_files())
    missing = {
        f"{path} imports {name}"
        for path, text in modules().items()
        for name in imported(path, text)
        if name not in served
    }
    assert missing == set()


def test_every_module_is_reached_from_the_first():
    texts = modules()
    assert WORKER.removeprefix("/") in texts["/assets/js/core/trusted.js"]
    reached, waiting = set(), [*STARTS, WORKER]
    while waiting:
        path = waiting.pop()
        if path not in reached and path in texts:
            reached.add(path)
            waiting += imported(path, texts[path])
    assert set(texts) - reached == set()


def test_the_document_names_files_of_the_page_alone():
    text = page_files()["/"].place.read_text(encoding="utf-8")
    named = set(re.findall(r"""(?:src|href)="([^"#][^"]*)\"""", text))
    assert named
    assert {f"/{name}" for name in named} - set(page_files()) == set()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)


def test_no_module_and_no_style_names_another_host():
    texts = modules() | {
        path: file.place.read_text(encoding="utf-8")
        for path, file in page_files().items()
        if path.endswith((".css", ".svg"))
    }
    spaces = ("http://www.w3.org/",)  # names of XML, which nobody asks for
    found = {
        f"{path}: {url}"
        for path, text in texts.items()
        for url in re.findall(r"https?://[^\s\"'`)]+", text)
        if not url.startswith(spaces)
    }
    assert found == set()


def test_no_module_makes_markup_of_a_text():
    sinks = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b")
    found = {
        f"{path}: {match[0]}" for path, text in modules().items() if (match := sinks.search(text))
    }
    assert found == set()


def test_a_file_that_changed_is_read_again(tmp_path):
    place = tmp_path / "a.js"
    place.write_text("1")
    file = PageFile("text/javascript", place)
    first = file.content()
    assert file.content() is first
    place.write_text("22")
    assert (file.content().plain, file.content().tag == first.tag) == (b"22", False)


def test_scripts_and_workers_are_files_of_this_server_alone():
    rules = content_policy().split("; ")
    assert [
        rule for rule in rules if rule.startswith(("script", "worker", "style", "default"))
    ] == [
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self'",
    ]


@each_row(
    ("name", "state", "address"),
    [
        ("a", {}, "#/session/a/memory"),
        ("train/a b", {"host": "h:1", "root": ""}, "#/session/train%2Fa%20b/memory?host=h%3A1"),
        ("<?#&%>", {}, "#/session/%3C%3F%23%26%25%3E/memory"),
    ],
)
def test_an_address_is_written_as_the_page_reads_it(name, state, address):
    assert session_address(name, "memory", **state) == address
