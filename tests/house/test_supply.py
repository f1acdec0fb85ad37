"""What is installed is what is declared, and what is declared is what is imported."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.each_row import each_row

BY_NAME = re.compile(r"""import(?:_module|orskip)\(\s*["']([a-zA-Z_0-9]+)""")
"""Imports that a type checker does not follow."""
FRAMEWORKS = {"jax", "tensorflow", "torch", "pandas", "polars"}
"""`peakline.pytest` profiles tests of the first three, data frames are of the others; whoever works
with them has them.
"""
BASE = {
    "anyio", "click", "duckdb", "fsspec", "h11", "msgspec", "numpy", "protobuf", "pyarrow",
    "starlette", "uvicorn",
}  # fmt: skip
"""What `pip install peakline` brings, 350 MB together at most (docs/install.md)."""
OF_EXTRAS = {
    "dask": {"engine/dask_cluster.py"}, "distributed": {"engine/dask_cluster.py"},
    "grpc": {"service/grpc_answering.py", "service/grpc_server.py"},
    "grpc_health": {"service/grpc_server.py"}, "grpc_reflection": {"service/grpc_server.py"},
    "hpack": {"capture/http2.py"}, "jax": {"pytest"}, "pandas": {"shown.py", "tables/rows.py"},
    "plotly": {"figures/plotly_figures.py"}, "polars": {"shown.py", "tables/rows.py"},
    "prometheus_client": {"service/prometheus.py"}, "pytest": {"pytest"}, "tensorflow": {"pytest"},
    "torch": {"pytest"},
}  # fmt: skip
"""Files or rooms that alone import what `pip install peakline` does not bring."""
OTHER_ENVIRONMENTS = {
    "conformance/peers": {
        "google", "grpc", "jax", "jaxlib", "numpy", "pytest", "tensorflow", "xprof", "anyio",
        "torch",
    },
    "diagnosis/programs": {"flax", "jax", "keras", "numpy", "optax", "tensorflow", "torch"},
    "data/memory_waits": {"tensorflow"},
    "fit/programs": {"numpy", "tensorflow"},
    "jobs/programs": {"jax", "tensorflow", "torch"},
    "programs": {"jax", "numpy", "tensorflow", "torch"},
}  # fmt: skip
"""Programs in tests that run with the packages of a lock of their own, or did once."""
ENTRY = re.compile(r"^([a-z0-9][a-z0-9.-]*)==([^ ;]+)((?: ;[^\\]*)?) \\$")
COMMIT = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+(\.\d+)+$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


@cache
def _imported(file: Path) -> frozenset[str]:
    """The top names of what ``file`` imports, in functions too; nothing of Python's own."""
    text = file.read_text("utf-8")
    result = set(BY_NAME.findall(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            result.add(node.module or "")
    return frozenset(name.partition(".")[0] for name in result) - sys.stdlib_module_names


def _imports_of(folder: Path, *, but: tuple[str, ...] = ()) -> dict[str, str]:
    """What the files of ``folder`` import of others, each with a file that does."""
    return {
        name: file.relative_to(folder).as_posix()
        for file in sorted(folder.rglob("*.py"))
        if not file.relative_to(folder).as_posix().startswith(but)
        for name in _imported(file) - _ours(file.parent)
    }


@cache
def _ours(folder: Path) -> set[str]:
    """What a file in ``folder`` may import of our own: by full names only in the package."""
    root = Path(__file__).parents[2]
    if folder.is_relative_to(root / "src"):
        return {"peakline"}
    beside = {
        folder,
        folder.parent,
        *(root / name for name in ("tests", "benchmarks", "buildtools")),
    }
    return {"peakline", "tests"} | {
        path.stem for place in beside for path in place.iterdir() if path.suffix in {"", ".py"}
    }


@cache
def _brought() -> dict[str, list[str]]:
    return dict(packages_distributions())


def _undeclared(imports: dict[str, str], declared: set[str]) -> dict[str, str]:
    """What of ``imports`` no declared distribution brings."""
    brought = _brought()
    return {
        name: file
        for name, file in imports.items()
        if declared.isdisjoint(canonicalize_name(one) for one in brought.get(name, [name]))
    }


def _names(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def declared(project):
    """What `pip install peakline` brings."""
    return _names(project["project"]["dependencies"])


@pytest.fixture(scope="module")
def extras(project):
    """By name: what each extra brings, with what the extras that it names bring."""
    written = project["project"]["optional-dependencies"]

    def lines(name):
        for line in written[name]:
            wanted = Requirement(line)
            if wanted.name == "peakline":
                for other in sorted(wanted.extras):
                    yield from lines(other)
            else:
                yield line

    return {name: [*lines(name)] for name in written}


@pytest.fixture(scope="module")
def locks(root):
    """By name: the versions of each package, one for every Python and platform."""
    return {file.stem: _read(file) for file in (root / "requirements").glob("*.lock")}


@pytest.fixture(scope="module")
def sources(root, project, extras):
    """What each lock is made from."""
    plain = project["project"]["dependencies"]
    result = {
        file.stem: re.findall(r"^[^#\n].*", file.read_text("utf-8"), re.MULTILINE)
        for file in (root / "requirements").glob("*.in")
    }
    return result | {"run": [*plain, *extras["all"]], "dev": [*plain, *extras["dev"]]}


@pytest.fixture(scope="module")
def workflows(root):
    return sorted((root / ".github/workflows").glob("*.yml"))


def test_the_package_declares_what_it_imports(root, declared, extras):
    imports = _imports_of(root / "src")
    # Kernels say `import cython`, which is gone when they are compiled.
    not_installed = FRAMEWORKS | {"cython"}
    optional = _names([*extras["all"], *extras["pytest"]])
    assert _undeclared(imports, declared | optional | not_installed) == {}
    assert {"h11", "grpc", "distributed", "pytest", *not_installed} <= set(imports)


def test_the_base_stays_small(declared):
    assert declared == BASE


def test_what_an_extra_brings_is_imported_by_its_files_alone(root, declared):
    package = root / "src/peakline"
    result = {}
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package).as_posix()
        if not place.startswith("kernels/"):
            for name in _undeclared(dict.fromkeys(_imported(file) - {"peakline"}, place), declared):
                here = place if place in OF_EXTRAS.get(name, ()) else place.partition("/")[0]
                result.setdefault(name, set()).add(here)
    assert result == OF_EXTRAS


def test_extras_are_those_that_messages_name(extras):
    from peakline.extras import EXTRAS

    assert {name: {*brought.values()} for name, brought in EXTRAS.items()} == {
        name: _names(lines)
        for name, lines in extras.items()
        if name not in {"all", "dev", "pytest"}
    }
    brought = _brought()
    for modules in EXTRAS.values():
        for module, distribution in modules.items():
            assert distribution in map(canonicalize_name, brought.get(module, [distribution]))
    assert {*extras["all"]} == {line for name in EXTRAS for line in extras[name]}


def test_no_dependency_is_declared_for_nothing(root, declared):
    """Every one is imported somewhere; one that another brings is not repeated for its sake."""
    imports = _imports_of(root / "src")
    used = {canonicalize_name(one) for name in imports for one in _brought().get(name, ())}
    assert declared - used == set()


def test_drivers_of_file_systems_are_extras(extras):
    from peakline.formats.common.urls import _EXTRAS

    assert set(_EXTRAS.values()) == {"s3", "gs"} <= set(extras)


@each_row("folder", ["tests", "scripts", "benchmarks", "buildtools"])
def test_development_declares_what_it_imports(root, declared, extras, folder):
    other = tuple(OTHER_ENVIRONMENTS)
    imports = _imports_of(root / folder, but=other if folder == "tests" else ())
    assert _undeclared(imports, declared | _names(extras["dev"])) == {}


@each_row(("folder", "packages"), list(OTHER_ENVIRONMENTS.items()))
def test_programs_of_other_environments_import_what_these_have(root, folder, packages):
    assert set(_imports_of(root / "tests" / folder)) - packages == set()


class TestLocks:
    """requirements/*.lock, which `make lock` writes."""

    def test_every_source_has_its_lock(self, locks, sources, root):
        assert set(locks) == set(sources)
        for name in locks:
            assert f"| `{name}.lock` |" in (root / "requirements/README.md").read_text("utf-8")

    def test_every_declared_bound_holds(self, locks, sources):
        wrong = [
            f"{name}.lock: {line}"
            for name, lines in sources.items()
            for line in lines
            for wanted in [Requirement(line)]
            for versions in [locks[name].get(canonicalize_name(wanted.name), [])]
            if not versions or not all(map(wanted.specifier.contains, versions))
        ]
        assert wrong == [], "run make lock"

    @each_row("name", ["run", "build"])
    def test_what_is_run_and_built_is_what_is_tested(self, locks, name):
        assert locks[name].items() <= locks["dev"].items()

    def test_the_build_is_that_of_the_project(self, project, sources):
        kernels = (Path(__file__).parents[2] / "buildtools/kernels.py").read_text("utf-8")
        assert sources["build"] == project["build-system"]["requires"]
        assert sources["compiler"] == re.findall(r'^ZIG = "(.*)"$', kernels, re.MULTILINE)

    def test_the_checker_of_types_is_locked(self, root):
        """In npm's own format: nothing but the file of that hash is taken."""
        import json

        lock = json.loads((root / "scripts/page/package-lock.json").read_text("utf-8"))
        wanted = json.loads((root / "scripts/page/package.json").read_text("utf-8"))
        assert lock["packages"].pop("")["devDependencies"] == wanted["devDependencies"]
        assert all(one["integrity"].startswith("sha512-") for one in lock["packages"].values())


class TestRelease:
    """What builds, tests and releases takes nothing that could be another thing tomorrow."""

    def test_actions_are_commits(self, root, workflows):
        """Those of the pages too, which people copy; the tag stands beside the commit."""
        uses = [
            (file.name, line.strip())
            for file in (root / "action.yml", *workflows, *(root / "docs").glob("*.md"))
            for line in file.read_text("utf-8").splitlines()
            if re.match(r"\s*(- )?uses:", line)
        ]
        wrong = [one for one in uses if not COMMIT.search(one[1]) and "uses: ./" not in one[1]]
        assert (wrong, len(uses) > 8) == ([], True)

    def test_workflows_may_only_read(self, workflows):
        for file in workflows:
            workflow = yaml.safe_load(file.read_text("utf-8"))
            assert workflow["permissions"] == {"contents": "read"}
            for job in workflow["jobs"].values():
                assert "permissions" not in job
                for step in job["steps"]:
                    if step.get("uses", "").startswith("actions/checkout@"):
                        assert step["with"]["persist-credentials"] is False

    def test_every_install_is_of_a_lock(self, root, project, workflows):
        others = ("action.yml", "Dockerfile", ".ci/run", "Makefile")
        texts = [file.read_text("utf-8") for file in (*workflows, *map(root.joinpath, others))]
        texts += [one for one in project["tool"]["cibuildwheel"].values() if "pip" in one]
        # A line that goes on: behind a backslash, and a folded one of YAML where it is deeper.
        texts = [re.sub(r"\\\n\s*", "", text) for text in texts]
        texts = [re.sub(r">-\n\s+(.*)\n\s+--", r"\1 --", text) for text in texts]
        commands = [one for text in texts for line in text.splitlines() for one in line.split("&&")]
        installs = [one for one in commands if re.search(r"\b(pip|PIP\)) (install|wheel)\b", one)]
        wrong = [one for one in installs if not re.search("--require-hashes|--no-deps", one)]
        assert (wrong, len(installs) > 8) == ([], True)
        unlocked = r"\b(pipx|uvx|npx|easy_install|curl|wget|npm i(nstall)?|uv (tool|pip install))\b"
        assert [one for one in commands if re.search(unlocked, one)] == []

    def test_the_base_can_be_held_to_a_digest(self, root):
        bases = re.findall(r"^FROM (\S+)", (root / "Dockerfile").read_text("utf-8"), re.MULTILINE)
        assert bases == ["python:${PYTHON}-slim${DIGEST:+@${DIGEST}}"] * 2


def _read(file: Path) -> dict[str, list[str]]:
    """The versions in a lock; any line but a version, its hashes and comments is an error.

    So a lock names no index, no file and no address.
    """
    versions: dict[str, list[str]] = {}
    hashes = 1
    for line in file.read_text("utf-8").splitlines():
        if entry := ENTRY.match(line):
            assert hashes, f"{file.name}: no hash before {line}"
            versions.setdefault(entry[1], []).append(entry[2])
            hashes = 0
        elif HASH.match(line):
            hashes += 1
        else:
            assert re.match(r" *# ", line), f"{file.name}: {line}"
            assert "://" not in line, f"{file.name}: {line}"
    assert hashes, f"{file.name}: no hash at the end"
    return versions
