"""Without any extra the verbs on files and the page work; the others say the line to type."""

import json
import re
import signal
import subprocess
import sys

import httpx
import pytest
from tests.each_row import each_row
from tests.install.bare import bare_environment, base_distributions, run
from tests.waiting import HANG_S

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
    found = json.loads(done.stdout)
    assert {verb: error for verb, (code, _, error) in found.items() if code} == {}
    silent = {"report", "export"}
    assert [
        verb for verb, (_, length, _) in found.items() if not length and verb not in silent
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
            asked = httpx.post(
                f"{url}api/sessions/{session}/sql",
                json={"query": "select count(*) n from events"}, timeout=HANG_S,
            )  # fmt: skip
            assert asked.status_code == 200, asked.text
            numbers = httpx.get(f"{url}metrics", timeout=HANG_S)
            assert (numbers.status_code, "peakline serve has metrics" in numbers.text) == (
                404,
                True,
            )
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
