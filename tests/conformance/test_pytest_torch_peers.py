"""The pytest plugin on tests that use the real PyTorch, also coroutines and under xdist.

PEAKLINE_TORCH_PYTHON names an interpreter with PyTorch, pytest, pytest-asyncio, anyio and
pytest-xdist; else the peers' counts. Where PyTorch is missing there, the tests are skipped.
"""

import json
import os
import re
import subprocess

import pytest

from tests.conformance.peer import PROGRAMS, peers_python

pytestmark = pytest.mark.conformance

MODULES = "torch, pytest_asyncio, anyio, xdist"
PLUGINS = ("peakline.pytest.plugin", "pytest_asyncio.plugin", "anyio", "xdist.plugin")
OUTCOMES = {
    "test_list[leaks]": "FAILED", "test_list[healthy]": "PASSED", "test_temporary[256]": "FAILED",
    "test_temporary[16]": "PASSED", "test_fixture": "FAILED", "test_async[256]": "FAILED",
    "test_async[16]": "PASSED", "test_anyio[leaks]": "FAILED", "test_anyio[healthy]": "PASSED",
    "test_profiles_itself": "FAILED", "test_no_program": "FAILED", "test_reads": "PASSED",
}  # fmt: skip


@pytest.fixture(scope="module")
def python():
    result = os.environ.get("PEAKLINE_TORCH_PYTHON") or peers_python()
    if subprocess.run(
        [result, "-c", f"import {MODULES}"], capture_output=True, check=False
    ).returncode:
        pytest.skip(f"{result} lacks one of {MODULES}")
    return result


@pytest.fixture(scope="module")
def ask(python):
    """Run the file of tests in a folder: the output, and the outcome of each test."""

    def run(folder, *arguments, **variables):
        (folder / "pytest.ini").write_text(
            "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"
        )
        source = (PROGRAMS / "limited_torch.py").read_text(encoding="utf-8")
        (folder / "test_it.py").write_text(source, encoding="utf-8")
        plugins = [word for name in PLUGINS for word in ("-p", name)]
        done = subprocess.run(
            [python, "-m", "pytest", *plugins, "-p", "no:cacheprovider", "-rA", *arguments,
             "test_it.py"],
            cwd=folder,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "300"} | variables,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        outcomes = {
            match[2]: match[1]
            for match in re.finditer(
                r"^(PASSED|FAILED|ERROR) test_it\.py::(\S+)", done.stdout, re.MULTILINE
            )
        }
        return done.stdout + done.stderr, outcomes

    return run


@pytest.fixture(scope="module")
def whole(ask, tmp_path_factory):
    return ask(tmp_path_factory.mktemp("run"), "--deselect", "test_it.py::test_base")


@pytest.mark.parametrize("test", OUTCOMES)
def test_faults_fail_and_healthy_twins_pass(whole, test):
    output, outcomes = whole
    assert outcomes.get(test) == OUTCOMES[test], output


def test_messages_have_the_op_and_the_size(whole):
    output, _ = whole
    assert "limit_device_memory: 32.1 MiB in use, 15.3 MiB allowed; largest: aten::sub" in output
    assert "limit_growth_per_step: every step leaves 768.0 KiB, 97.7 KiB allowed" in output
    # What a fixture holds counts, although PyTorch's own total on a CPU leaves it out.
    assert "limit_device_memory: 20.0 MiB in use, 15.3 MiB allowed" in output


def test_a_baseline_by_test_under_xdist(ask, tmp_path):
    words = ("--peakline-baseline", "figures.json", "-n", "2", "-k", "base or healthy or 16")
    output, outcomes = ask(tmp_path, *words)
    assert outcomes["test_base"] == "FAILED"
    assert "baseline: has no entry of this test; --peakline-update-baseline adds it" in output
    for _ in range(2):
        output, outcomes = ask(tmp_path, *words, "--peakline-update-baseline")
        assert set(outcomes.values()) == {"PASSED"}, output
    tests = json.loads((tmp_path / "figures.json").read_bytes())["peakline_tests"]
    assert {test: len(runs) for test, runs in tests.items()} == {
        f"test_it.py::{test}": 2 for test in outcomes
    }
    output, outcomes = ask(tmp_path, *words, ROWS="1010")
    assert outcomes["test_base"] == "PASSED", output
    output, outcomes = ask(tmp_path, *words, "--peakline-update-baseline", ROWS="1100")
    assert outcomes["test_base"] == "FAILED", output
    assert re.search(
        r"baseline: peak 4\.2 MiB, baseline 3\.8 MiB ± 0 B \(2 runs\), 4\.0 MiB", output
    )
    output, outcomes = ask(tmp_path, *words, "--peakline-reset-baseline", ROWS="1100")
    assert outcomes["test_base"] == "PASSED", output
    tests = json.loads((tmp_path / "figures.json").read_bytes())["peakline_tests"]
    assert len(tests["test_it.py::test_base"]) == 1
