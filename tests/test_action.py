"""The composite action: its shell steps, run by bash with what GitHub's runner gives them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import peakline as package
from peakline.cli.main import app

SAMPLE = ("tests", "data", "sessions", "tf2_cnn")


@pytest.fixture(scope="module")
def action(root):
    return yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture
def job(action, root, tmp_path):
    """Run the steps with some inputs, as the runner: exit code, output, and its files."""

    def run(**inputs):
        given = {name: one.get("default", "") for name, one in action["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        given["python"] = sys.executable
        for name in ("output", "summary"):
            (tmp_path / name).touch()
        place = str(Path(package.__file__).parent.parent)
        environment = os.environ | {
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GITHUB_ACTIONS": "true",
            "PYTHONPATH": place,
        }
        output = ""
        for step in action["runs"]["steps"]:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], "an input would be part of the script"
            variables = {
                name: re.sub(
                    r"\$\{\{ (?:inputs\.([\w-]+)|github\.action_path) \}\}",
                    lambda match: given[match[1]] if match[1] else str(root),
                    text,
                )
                for name, text in step.get("env", {}).items()
            }
            # As the runner starts it.
            script = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                script, cwd=tmp_path, env=environment | variables, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            output += done.stdout + done.stderr
            if done.returncode:
                break
        return done.returncode, output

    return run


def files_of(tmp_path):
    return [(tmp_path / name).read_text("utf-8") for name in ("output", "summary")]


def test_limits_that_pass(job, root, tmp_path):
    code, output = job(path=str(root.joinpath(*SAMPLE)), limits="--max-peak 80MB\n--max-idle '99%'")
    assert code == 1, "this profile has no device to be idle"
    code, output = job(
        path=str(root.joinpath(*SAMPLE)), limits="--max-peak 80MB\n--max-step-time 1s"
    )
    assert (code, "pass    step time" in output) == (0, True), output
    written, summary = files_of(tmp_path)
    assert written.splitlines() == ["passed=false", "passed=true"]
    assert "### ✅ Memory and time: 2 limits passed" in summary


def test_limits_that_fail_are_annotations_and_sarif(job, root, tmp_path):
    code, output = job(
        path=str(root.joinpath(*SAMPLE)),
        limits="--max-peak 1MB",
        sarif="out.sarif",
        junit="out.xml",
    )
    assert code == 1
    assert "::error title=peak%3A bfc_cpu_allocator_for_gpu::" in output
    written, summary = files_of(tmp_path)
    assert written.splitlines() == ["passed=false", "sarif=out.sarif"]
    assert "### ❌ Memory: 1 of 1 limit failed" in summary
    assert (tmp_path / "out.sarif").is_file()
    assert (tmp_path / "out.xml").is_file()


def test_a_baseline_is_made_and_held(job, root):
    sample = str(root.joinpath(*SAMPLE))
    assert job(path=sample, baseline="figures.json")[0] == 3
    assert job(path=sample, baseline="figures.json", update_baseline="true")[0] == 0
    code, output = job(path=sample, baseline="figures.json", tolerance="5%", summary="false")
    assert (code, "BASELINE" in output) == (0, True), output


def test_what_an_input_holds_is_never_run(job, root, tmp_path):
    evil = "$(touch owned) `touch owned`; touch owned"
    code, _ = job(path=str(root.joinpath(*SAMPLE)), limits=f"--max-peak '{evil}'")
    assert code == 2
    code, _ = job(path=evil, limits="--max-peak 1GB")
    assert code == 3
    assert not (tmp_path / "owned").exists()


def test_the_workflows_of_the_page_name_inputs_and_options_that_exist(action, root):
    page = (root / "docs/check.md").read_text("utf-8")
    github, gitlab = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (step,) = (
        one
        for one in yaml.safe_load(github)["jobs"]["profile"]["steps"]
        if one.get("uses", "").startswith("./")
    )
    assert {*step["with"]} <= {*action["inputs"]}
    limits = shlex.split(step["with"]["limits"])
    (line,) = (one for one in yaml.safe_load(gitlab)["profile"]["script"] if "peakline" in one)
    for given in (["profile", *limits], shlex.split(line)[2:]):
        verb = app.get_command(None, "check")
        assert verb.make_context("check", given).params["path"] == "profile"


def test_it_uses_no_action_of_others(action):
    assert action["runs"]["using"] == "composite"
    assert [step for step in action["runs"]["steps"] if "uses" in step] == []
    assert all(one["description"] for one in action["inputs"].values())
