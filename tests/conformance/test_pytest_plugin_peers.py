"""The pytest plugin on tests that use the real JAX and TensorFlow: faults and healthy twins."""

import os
import re
import subprocess

import pytest

import peakline
from tests.conformance.peer import PROGRAMS, peers_python

pytestmark = pytest.mark.conformance

MIB = 1 << 20


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Run one of the files of tests: the output, the outcome of each test, its kept profile."""
    python = peers_python()
    done = {}

    def run(name, *arguments):
        if (name, arguments) in done:
            return done[name, arguments]
        folder = tmp_path_factory.mktemp("run")
        (folder / "pytest.ini").write_text("[pytest]\n")
        source = (PROGRAMS / f"limited_{name}.py").read_text(encoding="utf-8")
        (folder / "test_it.py").write_text(source, encoding="utf-8")
        environment = os.environ | {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "CUDA_VISIBLE_DEVICES": "-1",
            "JAX_PLATFORMS": "cpu",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "COLUMNS": "300",
        }
        environment.pop("TF_CPU_ALLOCATOR_USE_BFC", None)
        run = subprocess.run(
            [python, "-m", "pytest", "-p", "peakline.pytest.plugin", "-p", "no:cacheprovider",
             "-rA", "--peakline-dir", "kept", "--peakline-summary", *arguments, "test_it.py"],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        outcomes = {
            match[2]: match[1]
            for match in re.finditer(
                r"^(PASSED|FAILED|XFAIL|ERROR) test_it\.py::(\S+)", run.stdout, re.MULTILINE
            )
        }
        done[name, arguments] = run.stdout, outcomes, folder / "kept"
        return done[name, arguments]

    return run


FRAMEWORKS = {"jax": (), "tensorflow": ("--peakline-tf-bfc",)}
OUTCOMES = {
    "test_list[leaks]": "FAILED", "test_list[healthy]": "PASSED", "test_temporary[256]": "FAILED",
    "test_temporary[16]": "PASSED", "TestMethods::test_temporary": "FAILED",
    "test_no_steps": "FAILED", "test_asks": "PASSED", "test_fails_itself": "FAILED",
    "test_expected": "XFAIL", "test_profiles_itself": "FAILED", "test_profiled_already": "FAILED",
}  # fmt: skip


def message_of(output, test):
    """What the report says of a failed test."""
    title = test.replace("::", ".")
    return re.split(rf"^_+ {re.escape(title)} _+$", output, flags=re.MULTILINE)[1].split("\n___")[0]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("test", OUTCOMES)
def test_faults_fail_and_healthy_twins_pass(ask, framework, test):
    output, outcomes, _ = ask(framework, *FRAMEWORKS[framework])
    assert outcomes.get(test) == OUTCOMES[test], output


@pytest.mark.parametrize(
    ("framework", "op"), [("jax", "keep test_it.py:"), ("tensorflow", "layer/matmul")]
)
def test_the_leak_is_told_with_its_op_and_its_rate(ask, framework, op):
    output, _, _ = ask(framework, *FRAMEWORKS[framework])
    message = message_of(output, "test_list[leaks]")
    # 192 x 1024 floats in every step.
    assert "limit_growth_per_step: every step leaves 768.0 KiB, 97.7 KiB allowed" in message
    assert re.search(rf"768\.0 KiB per step +{re.escape(op)}", message), message


@pytest.mark.parametrize(
    ("framework", "op"), [("jax", "jit(pairs)/sub"), ("tensorflow", "distances/sub")]
)
@pytest.mark.parametrize("test", ["test_temporary[256]", "TestMethods::test_temporary"])
def test_the_temporary_is_told_with_its_op_shape_and_size(ask, framework, op, test):
    output, _, _ = ask(framework, *FRAMEWORKS[framework])
    message = message_of(output, test)
    # 256 x 256 x 128 floats.
    assert re.search(rf"32\.0 MiB +{re.escape(op)}  float  \[256, 256, 128\]", message), message
    assert re.search(r"limit_device_memory: 3\d\.\d MiB in use, 15\.3 MiB allowed", message)


def test_the_program_is_named_with_its_largest_value_and_its_line(ask):
    output, outcomes, _ = ask("jax")
    names = ("test_program[256]", "test_program[16]", "test_no_program")
    assert [outcomes[name] for name in names] == ["FAILED", "PASSED", "FAILED"], output
    message = message_of(output, "test_program[256]")
    assert re.search(
        r"limit_program_memory: 3\d\.\d MiB needed, 15\.3 MiB allowed; .*\(jit_pairs\(\d+\)\)",
        message,
    )
    assert re.search(
        r"32\.0 MiB +jit\(pairs\)/sub test_it\.py:\d+  f32  \[256, 256, 128\]", message
    )
    assert "no compiled program ran" in message_of(output, "test_no_program")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_cannot_be_measured_says_why(ask, framework):
    output, _, _ = ask(framework, *FRAMEWORKS[framework])
    # TensorFlow's runs of functions would be steps; this test has none of them either.
    assert "limit_growth_per_step: cannot be measured: " in message_of(output, "test_no_steps")
    assert "profiler" in message_of(output, "test_profiled_already")
    assert "only one profile" in message_of(output, "test_profiled_already").lower()


def test_arrays_that_jax_drops_between_the_readings_are_no_silent_pass(ask):
    output, outcomes, _ = ask("jax")
    assert outcomes["test_dropped"] == "FAILED"
    message = message_of(output, "test_dropped")
    low, high = re.search(r"between (\S+) MiB and (\S+) MiB were in use", message).groups()
    # Nine arrays of 4 MiB were there at a time.
    assert float(low) <= 36 <= float(high)
    assert outcomes["test_dropped_in_steps"] == "PASSED"


def test_tensorflow_without_its_reporting_allocator_is_no_silent_pass(ask):
    output, outcomes, _ = ask("tensorflow")
    assert outcomes["test_temporary[16]"] == "FAILED"
    assert "only with TF_CPU_ALLOCATOR_USE_BFC=1" in message_of(output, "test_temporary[16]")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_profiles_are_kept_and_tell_the_same(ask, framework):
    output, _, chosen = ask(framework, *FRAMEWORKS[framework])
    (file,) = chosen.glob("*test_list-leaks*.xplane.pb")
    assert f"profile: {file}" in message_of(output, "test_list[leaks]")
    with peakline.open(file) as profile:
        answer = profile.memory()
    (growth,) = [detail.growth for detail in answer.details if detail.growth.leaks]
    assert growth.bytes_per_step == pytest.approx(768 << 10, rel=0.01)
    # 12 arrays of 768 KiB, and the weights.
    assert 10 * MIB < max(peak.peak_bytes for peak in answer.allocators) < 16 * MIB
    summary = output.split("device memory (Peakline)")[1]
    assert re.search(r"768\.0 KiB  test_it\.py::test_list\[leaks\]  BROKEN", summary)
    assert re.search(r"0 B  test_it\.py::test_list\[healthy\]\n", summary)
