"""What is published: the metadata, and the check of `make dist`."""

import runpy
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from importlib import import_module

import pytest
from tests.each_row import each_row

ADDRESS = "https://example.com/team/peakline"


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture
def project_urls(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "buildtools")
    monkeypatch.delenv("PEAKLINE_REPOSITORY", raising=False)
    return import_module("urls").project_urls


def test_an_index_can_show_what_it_is(project, root):
    assert 40 < len(project["description"]) < 120
    assert project["readme"] == {"file": "README.md", "content-type": "text/markdown"}
    assert {"tensorflow", "jax", "pytorch"} <= {*project["keywords"]}
    oldest = project["requires-python"].removeprefix(">=")
    pythons = [one.rpartition(" ")[2] for one in project["classifiers"] if "Python :: 3." in one]
    assert pythons[0] == oldest
    builds = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    assert [f"cp{one.replace('.', '')}-*" for one in pythons] == builds["build"].split()


def test_without_an_address_there_are_no_urls(project_urls, tmp_path):
    assert project_urls(tmp_path) == {}


def test_urls_are_under_the_address_and_the_source_distribution_has_them(
    project_urls, tmp_path, monkeypatch
):
    monkeypatch.setenv("PEAKLINE_REPOSITORY", f"{ADDRESS}/")
    made = project_urls(tmp_path)
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source"} == {*made}
    assert made["Source"] == ADDRESS
    assert all(url.startswith(ADDRESS) and not url.endswith("/") for url in made.values())
    lines = "".join(f"Project-URL: {label}, {url}\n" for label, url in made.items())
    (tmp_path / "PKG-INFO").write_text(f"Name: peakline\n{lines}\nText\n")
    monkeypatch.delenv("PEAKLINE_REPOSITORY")
    assert project_urls(tmp_path) == made


@pytest.fixture
def check(root):
    return runpy.run_path(str(root / "scripts/check_distributions.py"))


@pytest.fixture
def distributions(tmp_path, check):
    """Folders as `make dist` has them, of a source distribution and wheels of these files."""

    def make(source, wheel, own):
        made, built = tmp_path / "dist", tmp_path / "wheel"
        for folder, files in ((made, wheel), (built, own)):
            folder.mkdir()
            with zipfile.ZipFile(folder / "peakline-1.whl", "w") as archive:
                for name, text in files.items():
                    archive.writestr(name, text)
        with tarfile.open(made / "peakline-1.tar.gz", "w:gz") as archive:
            for name, text in source.items():
                place = tmp_path / "one"
                place.write_text(text)
                archive.add(place, f"peakline-1/{name}")
        return made, built

    check["files_of_repository"].__globals__["files_of_repository"] = lambda _: {"a": b"1"}
    return make


@each_row(
    ("source", "wheel", "said"),
    [
        ({"a": "1", "PKG-INFO": "x"}, {"m": "1"}, ""),
        ({}, {"m": "1"}, "only in the repository: a"),
        ({"a": "1", ".env": "x"}, {"m": "1"}, "only in the sdist: .env"),
        ({"a": "2"}, {"m": "1"}, "not the same in sdist and repository: a"),
        ({"a": "1"}, {"m": "2"}, "not the same in sdist's-wheel and tree's-wheel: m"),
        ({"a": "1"}, {"m": "1", "n": ""}, "only in the sdist's-wheel: n"),
    ],
)
def test_a_difference_is_found(check, distributions, capsys, tmp_path, source, wheel, said):
    import shutil

    for name in ("dist", "wheel"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    made, built = distributions(source, wheel, {"m": "1"})
    assert (check["main"](made, built), said in capsys.readouterr().out) == (1 if said else 0, True)
    assert check["main"](made) == (1 if said and "sdist's-wheel" not in said else 0)


def test_what_git_has_is_the_repository(check, root):
    if not (root / ".git").exists():
        pytest.skip("a source distribution has no git")
    found = check["files_of_repository"](root)
    assert {"pyproject.toml", "Dockerfile", ".ci/run"} <= {*found}
    assert found["LICENSE"] == (root / "LICENSE").read_bytes()
    assert not [name for name in found if name.startswith((".venv", "build/"))]


def test_the_source_distribution_has_every_top_of_the_repository(check, root):
    """Cheap; `make dist` compares every file."""
    if not (root / ".git").exists():
        pytest.skip("a source distribution has no git")
    lines = [line.split() for line in (root / "MANIFEST.in").read_text("utf-8").splitlines()]
    grafted = {line[1] for line in lines if line[0] == "graft"}
    included = [name for line in lines if line[0] == "include" for name in line[1:]]
    by_itself = ["LICENSE", "MANIFEST.in", "pyproject.toml", "setup.py"]
    names = check["files_of_repository"](root)
    assert {name.partition("/")[0] for name in names if "/" in name} == grafted
    tops = [name for name in names if "/" not in name]
    patterns = [*included, *by_itself]
    assert [name for name in tops if not any(fnmatch(name, one) for one in patterns)] == []
