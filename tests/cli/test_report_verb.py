import shlex
import sys

from tests.analysis.records import alloc
from tests.each_row import each_row
from tests.report.document import Document


def test_the_report_is_written_once_and_replaced_only_when_told(peakline, opened, tmp_path):
    path, page = opened([alloc(1, 100, op="a/b")]), tmp_path / "page.html"
    run = peakline("report", path, "-o", page)
    assert (run.code, run.out, run.err) == (0, "", "")
    first = page.read_bytes()
    document = Document(first)
    assert document.texts("h1") == ["fake.pb"]
    command = dict(document.table("Where the numbers come from")[1:])["Command"]
    assert command == shlex.join(["peakline", "report", str(path), "-o", str(page)])
    run = peakline("report", path, "-o", page, "--title", "Another one")
    assert (run.code, run.out) == (2, "")
    assert run.err == f"peakline: {page}: exists; use --force to replace it\n"
    assert page.read_bytes() == first
    assert peakline("report", path, "-o", page, "--title", "Another one", "--force").code == 0
    document = Document(page.read_bytes())
    assert document.texts("h1") == ["Another one"]
    assert "--title 'Another one'" in document.text


def test_a_dash_is_standard_output(opened, capfdbinary):
    from peakline.__main__ import main

    assert main(["report", str(opened([alloc(1, 100)])), "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert Document(out).texts("h1") == ["fake.pb"]
    assert err == b""


def test_a_file_must_be_named(peakline, opened):
    run = peakline("report", opened([alloc(1, 100)]))
    assert (run.code, run.out) == (2, "")
    assert "--output" in run.err


def test_the_profile_itself_is_never_replaced(peakline, opened):
    path = opened([alloc(1, 100)])
    run = peakline("report", path, "-o", path, "--force")
    assert run.code == 2
    assert "is the profile itself" in run.err
    assert path.read_bytes() == b"x"


def test_a_profile_without_memory_gives_a_report_that_says_so(peakline, opened, tmp_path):
    path, page = opened([]), tmp_path / "page.html"
    run = peakline("report", path, "-o", page)
    assert (run.code, run.out) == (0, "")
    assert run.err == f"peakline: {path}: no memory events in this profile\n"
    assert "nothing about memory" in Document(page.read_bytes()).text


def test_one_allocator(peakline, opened, tmp_path):
    path = opened([alloc(1, 100, allocator="one"), alloc(2, 100, allocator="two")])
    page = tmp_path / "page.html"
    assert peakline("report", path, "-o", page, "--allocator", "two").code == 0
    assert "Allocator two" in Document(page.read_bytes()).text
    run = peakline("report", path, "-o", tmp_path / "other.html", "--allocator", "three")
    assert run.code == 3
    assert run.err.count("\n") == 1
    assert not (tmp_path / "other.html").exists()


@each_row("options", [["--strict"]])
def test_what_was_lost_is_an_error_when_strict_and_leaves_no_file(
    peakline, opened, tmp_path, options
):
    path = opened([alloc(None, 1)])
    page = tmp_path / "page.html"
    assert peakline("report", path, "-o", page, *options).code == 3
    assert not page.exists()
    assert "[untracked_allocation]" in peakline("report", path, "-o", page).err


def test_importing_the_package_loads_nothing_heavy():
    import subprocess

    code = "import sys, peakline.report; print('plotly' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"
