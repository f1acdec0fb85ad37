"""The composite action: its shell steps, run by bash with what GitHub's runner gives them."""

import os
import re
import runpy
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

from peakline.check.question import KEYS
from peakline.cli.main import app

SAMPLE = ("tests", "data", "sessions", "tf2_cnn")


@pytest.fixture(scope="module")
def action(root):
    return yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def temporary(root, tmp_path_factory):
    """The runner's folder for temporary files, after the step that installs: it stands there that
    an environment was made, which has what this one has.
    """
    folder = tmp_path_factory.mktemp("runner")
    place = folder / "peakline"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    paths = [str(Path(path).resolve()) for path in sys.path if path.startswith("/")]
    (site / "here.pth").write_text("\n".join(paths), "utf-8")
    (place / "made").write_text(f"{root}\n{sys.executable}\n{sys.version}\n", "utf-8")
    return folder


@pytest.fixture
def job(action, root, tmp_path, temporary):
    """Run the steps with some inputs, as the runner: exit code and output. ``environment`` is what
    the job sets besides.
    """

    def run(environment=None, **inputs):
        given = {name: one.get("default", "") for name, one in action["inputs"].items()}
        given |= {"python": sys.executable}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        for name in ("output", "summary"):
            (tmp_path / name).touch()
        of_job = os.environ | {
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(temporary),
        }
        of_job |= environment or {}
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
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
                script, cwd=workspace, env=of_job | variables, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            output += done.stdout + done.stderr
            if done.returncode:
                break
        return done.returncode, output

    return run


def outputs_of(tmp_path):
    """What the runner takes from the file of outputs, and nothing else may stand there."""
    result = {}
    for line in (tmp_path / "output").read_text("utf-8").splitlines():
        name, equals, value = line.partition("=")
        assert equals
        assert "<<" not in name
        result[name] = value
    return result


def test_limits_that_pass(job, root, tmp_path):
    code, output = job(path=str(root.joinpath(*SAMPLE)), limits="--max-peak 80MB\n--max-idle '99%'")
    assert code == 1, "this profile has no device to be idle"
    code, output = job(
        path=str(root.joinpath(*SAMPLE)), limits="--max-peak 80MB\n--max-step-time 1s"
    )
    assert (code, "pass    step time" in output) == (0, True), output
    assert outputs_of(tmp_path) == {"passed": "true", "limits": "2"}
    summary = (tmp_path / "summary").read_text("utf-8")
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
    assert outputs_of(tmp_path) == {"passed": "false", "limits": "1", "sarif": "out.sarif"}
    summary = (tmp_path / "summary").read_text("utf-8")
    assert "### ❌ Memory: 1 of 1 limit failed" in summary
    assert (tmp_path / "workspace/out.sarif").is_file()
    assert (tmp_path / "workspace/out.xml").is_file()


def test_a_baseline_is_made_and_held(job, root, tmp_path):
    sample = str(root.joinpath(*SAMPLE))
    assert job(path=sample, baseline="figures.json")[0] == 3
    assert job(path=sample, baseline="figures.json", update_baseline="true")[0] == 0
    assert outputs_of(tmp_path) == {"passed": "false", "limits": "0"}, "nothing was judged yet"
    code, output = job(path=sample, baseline="figures.json", tolerance="5%", summary="false")
    assert (code, "BASELINE" in output) == (0, True), output
    assert outputs_of(tmp_path)["passed"] == "true"


def test_what_an_input_holds_is_never_run(job, root, tmp_path):
    evil = "$(touch owned) `touch owned`; touch owned"
    code, _ = job(path=str(root.joinpath(*SAMPLE)), limits=f"--max-peak '{evil}'")
    assert code == 2
    code, _ = job(path=evil, limits="--max-peak 1GB")
    assert code == 3
    assert not (tmp_path / "workspace/owned").exists()


ON_IMPORT = "import os, sys\nopen(os.environ['OWNED'], 'a').write(__name__ + ' ')\nos._exit(0)\n"
PLANTED = (
    "peakline/__init__.py", "peakline/__main__.py", "shlex.py", "sitecustomize.py",
    "usercustomize.py", "pip.py", "venv.py", "ensurepip.py", "subprocess.py", "tempfile.py",
    "re.py", "xml.py", "click.py", "numpy.py", "github_action.py", "kernels.py", "setuptools.py",
    "lib/python3/site-packages/sitecustomize.py",
)  # fmt: skip
FILES = {
    "pip.conf": "[install]\ntarget = owned_packages\nno-deps = true\n",
    "setup.cfg": "[install]\nprefix = owned_packages\n",
    "evil.pth": "import os; os._exit(0)\n",
    "evil.sh": 'echo bash >> "$OWNED"; exit 0\n',
    "pyvenv.cfg": "home = .\n",
}


@pytest.mark.parametrize("is_installed", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_nothing_of_the_workspace_is_run(job, root, tmp_path, is_installed):
    workspace, owned = tmp_path / "workspace", tmp_path / "owned"
    for name in PLANTED:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(ON_IMPORT, "utf-8")
    for name, text in FILES.items():
        (workspace / name).write_text(text, "utf-8")
    before = {*workspace.rglob("*")}
    environment = {
        "BASH_ENV": "evil.sh", "OWNED": str(owned), "PIP_CONFIG_FILE": "pip.conf",
        "PYTHONHOME": ".", "PYTHONPATH": f".:{workspace}", "PYTHONSTARTUP": "evil.sh",
        "PYTHONUSERBASE": ".", "PYTHONSAFEPATH": "",
    }  # fmt: skip
    if not is_installed:
        # As far as it comes without an index: the first package that a lock names.
        environment |= {"RUNNER_TEMP": str(tmp_path / "empty"), "PIP_NO_INDEX": "1"}
        environment |= {"PIP_FIND_LINKS": str(tmp_path)}
        (tmp_path / "empty").mkdir()
    code, output = job(environment, path=str(root.joinpath(*SAMPLE)), limits="--max-peak 1MB")
    assert not owned.exists(), owned.read_text("utf-8")
    assert code == 1, output
    assert {*workspace.rglob("*")} == before
    if is_installed:
        assert outputs_of(tmp_path) == {"passed": "false", "limits": "1"}
    else:
        assert "No matching distribution found" in output
        assert outputs_of(tmp_path) == {}
        assert [path.name for path in (tmp_path / "empty").iterdir()] == ["peakline"]


NOTHING_JUDGED = [
    *({"path": path} for path in (
        "", "-", "--help", "-h", "--version", "--completion", "--config=evil.toml", "--no-config",
        "x\npassed=true", "x\rpassed=true", "::x", "\u2028")),
    *({"limits": limits} for limits in (
        "", "--max-peak '1PB", '--max-peak 1PB "', "--max-peak 1PB \\", "--help", "--version",
        "--completion bash", "--max-peak 1PB --help", "--max-peak", "--max-peak --help",
        "--max-peak= --help", "1PB", "--max-peak 1PB --json", "--max-peak 1PB -- x",
        "--max-peak 1PB --junit=x", "--max-peak 1PB --summary x", "--max-peak 1PB --sarif x",
        "--baseline made.json --update-baseline", "--no-config", "--no-config=1 --max-peak 1PB",
        "--tolerance 5%", "--max-peak 1PB --debug", "--config evil.toml",
        "--max-peak 1PB --annotations github", "--allocator x", "--max-pea 1PB", "--max-peak nan")),
    *({"limits": "--max-peak 1PB", name: value} for name, value in (
        ("baseline", "--help"), ("baseline", "x\npassed=true"), ("tolerance", "--help"),
        ("tolerance", "5%"), ("sarif", "x\npassed=true"), ("sarif", "x\r\npassed=true"),
        ("sarif", "-"), ("sarif", "no/folder/x"), ("junit", "x\npassed=true"),
        ("junit", "no/folder/x"), ("update_baseline", "true"), ("update_baseline", "yes"),
        ("update_baseline", "true\n"), ("summary", ""), ("summary", "True"), ("annotations", "1"),
        ("annotations", "false\nx"), ("python", ""), ("python", "-c"), ("python", "true"),
        ("python", "echo"), ("python", ":"), ("python", "exec"), ("python", "./python"),
        ("python", "bin/python"), ("python", "p\nq"), ("python", "/no/python"),
        ("python", "--version"), ("python", "."), ("python", "FOO=x"))),
]  # fmt: skip
"""Inputs with which no limit can be judged; the profile is a good one, and 1PB enough for it."""
ONCE = [{"path": "--help"}]
"""Of them those with which the action once passed."""


@pytest.mark.parametrize("attacks", [ONCE, pytest.param(NOTHING_JUDGED, marks=pytest.mark.nightly)])
def test_what_judges_no_limit_never_passes(job, root, tmp_path, attacks):
    workspace = tmp_path / "workspace"
    (workspace / "bin").mkdir(parents=True)
    for place in (workspace / "python", workspace / "bin/python"):
        place.write_text("#!/bin/sh\nexit 0\n", "utf-8")
        place.chmod(0o755)
    (workspace / "evil.toml").write_text("[tool.peakline.check]\n", "utf-8")
    before = {*workspace.rglob("*")}
    wrong = []
    for inputs in attacks:
        (tmp_path / "output").write_text("", "utf-8")
        good = {"path": str(root.joinpath(*SAMPLE))}
        if "path" in inputs:
            good["limits"] = "--max-peak 1PB"
        # A python that does nothing is no environment.
        temporary = {"RUNNER_TEMP": str(tmp_path)} if "python" in inputs else {}
        code, output = job(temporary, **good | inputs)
        outputs, nothing = outputs_of(tmp_path), {"passed": "false", "limits": "0"}
        if code == 0 or nothing | outputs != nothing:
            wrong.append((inputs, code, outputs, output))
    assert wrong == []
    assert {*workspace.rglob("*")} == before


def test_reports_of_an_earlier_run_are_none_of_this_one(job, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    suite = '<testsuite tests="3" skipped="0" failures="0"/>'
    (workspace / "out.xml").write_text(f"<testsuites>{suite}</testsuites>", "utf-8")
    (workspace / "out.sarif").write_text("{}", "utf-8")
    code, _ = job(path="missing", limits="--max-peak 1PB", sarif="out.sarif", junit="out.xml")
    assert code == 3
    assert outputs_of(tmp_path) == {"passed": "false", "limits": "0"}


def test_limits_of_a_file_are_judged_and_counted(job, root, tmp_path):
    (tmp_path / "workspace").mkdir()
    file = tmp_path / "workspace/pyproject.toml"
    file.write_text('[tool.peakline.check]\nmax-peak = "80MB"\n', "utf-8")
    sample = str(root.joinpath(*SAMPLE))
    assert job(path=sample)[0] == 0
    assert outputs_of(tmp_path) == {"passed": "true", "limits": "1"}
    # A quote that does not end once left the limits of the file alone to be judged.
    assert job(path=sample, limits="--max-step-time '1ps")[0] == 2
    assert outputs_of(tmp_path) == {"passed": "false", "limits": "0"}


def test_limits_may_hold_what_a_file_may_and_which_profile(root):
    script = runpy.run_path(str(root / "scripts/github_action.py"))
    assert {*KEYS} <= script["WITH_VALUE"]
    options = {name for one in app.get_command(None, "check").params for name in one.opts}
    assert {f"--{name}" for name in script["WITH_VALUE"] | script["FLAGS"]} <= options
    dockerfile = (root / "Dockerfile").read_text("utf-8")
    assert all(name in dockerfile for name in script["SOURCES"])


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
