"""What is installed, and in what: the base alone, distributions, the container."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from tests.each_row import each_row
from tests.install.bare import bare_environment, base_distributions, run
from tests.waiting import HANG_S, until

from peakline.cli.main import app

CNN = "@sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
LEAK = "@programs/leak_list.xplane.pb.gz"
LINES = {
    "summary": [CNN],
    "memory": [CNN],
    "fit": [CNN],
    "steps": [CNN],
    "ops": [CNN],
    "programs": ["@xla_dump"],
    "diff": [CNN, LEAK],
    "check": [CNN, "--max-peak", "1TiB"],
    "report": [CNN, "-o", "{out}/report.html"],
    "export": [CNN, "--to", "perfetto", "-o", "{out}/profile.perfetto"],
    "trace": [CNN, "--from", "0ms", "--to", "1ms"],
    "tool": ["op_stats", CNN, "-p", "show_name_regexes=.*conv.*"],
    "sql": [CNN, "select count(*) from events"],
    "graph": ["@graph_def/frozen.pb", "--check"],
    "sessions": ["@sessions/tf2_cnn"],
    "demo": [],
}
"""A line of every verb on files."""
SERVING = {"serve", "capture", "view"}
EVERY_LINE = """
import contextlib, io, json, sys
from peakline.__main__ import main

found = {}
for verb, words in json.loads(sys.argv[1]).items():
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([verb, *words])
    found[verb] = [code, out.buffer.tell(), err.getvalue()]
print(json.dumps(found))
"""
_URL = re.compile(r" at (http://127\.0\.0\.1:\d+/)")


@pytest.fixture
def bare(root, tmp_path):
    return bare_environment(root, tmp_path / "hiding")


def _filled(words, root, tmp_path):
    """``words`` with the places of samples (@) and of what is written."""
    samples = f"{root / 'tests/data'}/"
    return [re.sub("^@", samples, word).format(out=tmp_path) for word in words]


def test_what_is_hidden_is_what_the_base_does_not_bring(root, bare):
    base = base_distributions(root)
    assert {"numpy", "pyarrow", "duckdb", "idna"} <= base  # anyio brings the last
    assert base.isdisjoint({"grpcio", "hpack", "prometheus-client", "plotly", "pytest"})
    done = run(bare, code="import numpy, duckdb, starlette, h11; import grpc")
    assert "No module named 'grpc'" in done.stderr


def test_every_verb_on_files_works(root, bare, tmp_path):
    assert {*LINES} == {*app.list_commands(None)} - SERVING
    lines = {verb: _filled(words, root, tmp_path) for verb, words in LINES.items()}
    done = run(bare, json.dumps(lines), code=EVERY_LINE)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {verb: error for verb, (code, _, error) in result.items() if code} == {}
    silent = {"report", "export"}
    assert [
        verb for verb, (_, length, _) in result.items() if not length and verb not in silent
    ] == []


def test_the_page_works(root, bare, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "peakline", "view", *_filled([CNN], root, tmp_path), "--no-browser"],
        env=bare, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            url = _URL.search(process.stderr.readline())[1]
            session = httpx.get(f"{url}api/sessions", timeout=HANG_S).json()[0]["session_id"]
            for path in (
                "",
                f"api/sessions/{session}/tools/memory_profile",
                f"api/sessions/{session}/tools/timeline",
                "openapi.json",
            ):
                assert httpx.get(f"{url}{path}", timeout=HANG_S).status_code == 200, path
            response = httpx.post(
                f"{url}api/sessions/{session}/sql",
                json={"query": "select count(*) n from events"}, timeout=HANG_S,
            )  # fmt: skip
            assert response.status_code == 200, response.text
            numbers = httpx.get(f"{url}metrics", timeout=HANG_S)
            assert numbers.status_code == 404
            assert "peakline serve has metrics" in numbers.text
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 0


@each_row(
    ("words", "said"),
    [
        (
            ["serve", "{out}"],
            "serve needs grpcio, which is not installed; type: pip install 'peakline[serve]'",
        ),
        (
            ["capture", "localhost:9012", "--logdir", "{out}"],
            "capture needs grpcio, which is not installed; type: pip install 'peakline[serve]'",
        ),
        (
            ["summary", "s3://bucket/logs"],
            "s3:// needs s3fs, which is not installed; type: pip install 'peakline[s3]'",
        ),
        (
            ["sessions", "gs://bucket/logs"],
            "gs:// needs gcsfs, which is not installed; type: pip install 'peakline[gs]'",
        ),
        (
            ["tool", "memory_profile", "@sessions/tf2_multihost", "--executor", "dask"],
            "--executor dask needs distributed, which is not installed; "  # noqa: ISC004
            "type: pip install 'peakline[dask]'",
        ),
    ],
)
def test_what_is_missing_is_one_line_to_type(root, bare, tmp_path, words, said):
    done = run(bare, *_filled(words, root, tmp_path))
    assert done.stderr == f"peakline: {said}\n"
    assert (done.returncode, done.stdout) == (2, "")


def test_a_figure_says_the_line_too(root, bare, tmp_path):
    code = (
        "import sys, peakline\nfrom peakline import errors, figures\n"
        "try:\n    figures.memory_over_time(peakline.open(sys.argv[1]))\n"
        "except errors.UsageError as error:\n    print(error)\n"
    )
    done = run(bare, *_filled([CNN], root, tmp_path), code=code)
    assert done.stdout == (
        "peakline.figures.memory_over_time needs plotly, which is not installed; "
        "type: pip install 'peakline[notebook]'\n"
    ), done.stderr


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
    result = check["files_of_repository"](root)
    assert {"pyproject.toml", "Dockerfile", ".ci/run"} <= {*result}
    assert result["LICENSE"] == (root / "LICENSE").read_bytes()
    assert not [name for name in result if name.startswith((".venv", "build/"))]


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


_PORT = re.compile(r" and (http://127\.0\.0\.1:\d+); Ctrl-C ends it")


@pytest.fixture(scope="module")
def steps(root):
    """The instructions, each with its text, in order; continued lines are joined."""
    text = re.sub(r"^#.*\n", "", (root / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


@pytest.fixture(scope="module")
def last(steps):
    """The instructions of the image that is made."""
    begin = max(number for number, (word, _) in enumerate(steps) if word == "FROM")
    return dict(steps[begin:])


def test_what_is_copied_exists_and_is_not_ignored(root, steps):
    rules = [
        line
        for line in (root / ".dockerignore").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    sent = {line[1:] for line in rules if line.startswith("!")}
    sources = [
        source.rstrip("/")
        for word, text in steps
        if word == "COPY" and not text.startswith("--from")
        for source in text.split()[:-1]
    ]
    assert len(sources) > 5
    for source in sources:
        assert (root / source).exists()
        assert source in sent
    # And nothing more, but for one file that another rule would leave out.
    assert {name for name in sent if "/" not in name} == set(sources)
    assert all(fnmatch(name, "src/*") for name in sent if "/" in name)


def test_it_runs_as_nobody_in_particular(last):
    user, _, group = last["USER"].partition(":")
    assert int(user) == int(group) >= 1000
    assert json.loads(last["VOLUME"]) == ["/logs"]
    assert f"--uid {user} " in last["RUN"]


def test_it_installs_the_locks_and_the_wheel(steps):
    commands = " && ".join(text for word, text in steps if word == "RUN")
    assert set(re.findall(r"requirements/\S+\.lock", commands)) == {
        f"requirements/{name}.lock" for name in ("run", "build", "compiler")
    }
    assert commands.count("--require-hashes") == 3
    assert "/opt/peakline/bin/pip install --no-deps /wheel/peakline-*.whl" in commands


def test_its_command_serves_and_its_health_check_passes(last, tmp_path):
    """With other ports and places; without a token it would not listen on every address."""
    logs, tokens = tmp_path / "logs", tmp_path / "tokens"
    logs.mkdir()
    tokens.write_text("a-token-of-thirty-two-characters\n")
    tokens.chmod(0o600)
    entry, more = json.loads(last["ENTRYPOINT"]), json.loads(last["CMD"])
    assert entry[0] == "peakline"
    here = {"/logs": str(logs), "/run/secrets/tokens": str(tokens)}
    start = [sys.executable, "-m", "peakline", *(here.get(word, word) for word in entry[1:])]
    ports = ["--http-port", "0", "--grpc-port", "0"]
    refused = subprocess.run([*start, *ports], capture_output=True, text=True, check=False)
    assert (refused.returncode, "--token-file" in refused.stderr) == (2, True)

    options = [here.get(word, word) for word in more]
    said = tmp_path / "said"
    with (
        said.open("w") as stream,
        subprocess.Popen([*start, *options, *ports], stderr=stream, stdout=stream) as process,
    ):
        try:
            until(lambda: _PORT.search(said.read_text()) or process.poll() is not None)
            url = _PORT.search(said.read_text())[1]
            check = json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
            assert check[0] == "python"
            mine = [word.replace("http://127.0.0.1:8080", url) for word in check[1:]]
            subprocess.run([sys.executable, *mine], check=True, env=_direct())
            assert mine != check[1:]
            assert httpx.get(f"{url}/api/sessions", timeout=HANG_S).status_code == 401
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
    broken = [sys.executable, *(word.replace("healthz", "nosuch") for word in mine)]
    assert subprocess.run(broken, check=False, env=_direct(), capture_output=True).returncode == 1


def _direct():
    """No proxy is between the check and the server."""
    return {**os.environ, "no_proxy": "*"}


def test_the_ports_are_those_of_the_server(last):
    from peakline.service.settings import Settings

    ports = {int(port) for port in last["EXPOSE"].split()}
    made = Settings(roots=(str(Path.cwd()),))
    assert ports == {made.http_port, made.grpc_port}
