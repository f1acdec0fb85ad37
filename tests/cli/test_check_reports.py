"""JUnit's XML, SARIF and annotations: what those who read them require, whatever a name holds."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.cli.made import made, step
from tests.each_row import each_row
from tests.memory.records import alloc

EVIL = "a\x1b[31m,b:c%\n::error::owned<&>\"'\ud800]]>"
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "disabled", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "disabled", "time", "hostname",
                  "id", "package", "timestamp"},
    "testcase": {"name", "classname", "time", "assertions", "status", "file"},
    "failure": {"message", "type"},
    "skipped": {"message"},
}  # fmt: skip
"""Those of Jenkins' schema (junit-10.xsd); ``file`` is what GitLab reads besides."""
INSIDE = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "skipped"},
    "failure": set(),
    "skipped": set(),
}


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def evil(opened):
    return opened([alloc(1, 3 << 20, op=EVIL, allocator=EVIL, in_use_bytes=3 << 20)])


def xml_of(name):
    """What a reader makes of it, encoding and all."""
    return ET.fromstring(Path(name).read_bytes())  # noqa: S314  (we wrote it)


def check_junit(root):
    """Whether elements and attributes are those of the schema, and the counts right."""
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= INSIDE[element.tag]
    for case in root.iter("testcase"):
        assert {"name", "classname"} <= set(case.attrib)
    for suite in (root, *root):
        assert int(suite.get("tests")) == len(list(suite.iter("testcase")))
        assert int(suite.get("failures")) == len(list(suite.iter("failure")))
        assert int(suite.get("errors")) == 0


def check_sarif(document):
    """What SARIF 2.1.0 requires of the members that we write, and GitHub of those it shows."""
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] == "peakline"
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert all(rule["shortDescription"]["text"] for rule in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["level"], result["kind"]) == ("error", "fail")
        assert result["message"]["text"]
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[\w%:/.~!$&'()*+,;=@-]+", uri, re.ASCII)
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert place["logicalLocations"][0]["fullyQualifiedName"]
        assert re.fullmatch("[0-9a-f]{64}", result["partialFingerprints"]["peaklineLimit/v1"])
    return run["results"]


def test_junit_has_a_case_for_each_limit(peakline, monkeypatch, tmp_path):
    path = made(monkeypatch, tmp_path, step_breakdown=[step(0, 0, "gpu", compute=10)])
    run = peakline("check", path, "--max-step-time", "5ms", "--max-input-wait", "5%", "--max-peak",
                   "1GB", "--junit", "out.xml")  # fmt: skip
    assert run.code == 1
    root = xml_of("out.xml")
    check_junit(root)
    failures = {case.get("name"): case.find("failure") for case in root.iter("testcase")}
    assert list(failures) == [
        "peak: (no allocator)", "step time: steps", "input wait: steps"
    ]  # fmt: skip
    assert failures["input wait: steps"] is None
    assert failures["step time: steps"].get("message").startswith("the median step takes 10.000 ms")


def test_no_name_breaks_a_report(peakline, evil):
    run = peakline("check", evil, "--max-peak", "1MiB", "--junit", "out.xml", "--sarif", "s.json",
                   "--annotations", "github")  # fmt: skip
    assert run.code == 1
    check_junit(xml_of("out.xml"))
    assert len(check_sarif(json.loads(Path("s.json").read_bytes()))) == 1
    commands = [line for line in run.out.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert re.fullmatch(r"::error title=[^:,\n]*::[^\n]*", commands[0])
    assert "%25" in commands[0]
    run = peakline("check", evil, "--max-peak", "1MiB", "--annotations", "gitlab",
                   "--annotations-file", "quality.json")  # fmt: skip
    (entry,) = json.loads(Path("quality.json").read_bytes())
    assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert entry["severity"] in {"info", "minor", "major", "critical", "blocker"}
    assert entry["location"]["lines"]["begin"] == 1
    assert not any(name in run.out for name in ("::error ", "::notice "))


def test_a_limit_of_a_file_is_where_annotations_point(peakline, evil, repository):
    (repository / "pyproject.toml").write_text('[tool.peakline.check]\n\nmax-peak = "1MiB"\n')
    run = peakline("check", evil, "--annotations", "github", "--sarif", "out.json")
    assert "::error file=pyproject.toml,line=3,title=peak%3A " in run.out
    (result,) = check_sarif(json.loads(Path("out.json").read_bytes()))
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "pyproject.toml"}, "region": {"startLine": 3}
    }  # fmt: skip


def test_a_program_points_at_its_line(peakline, root, monkeypatch):
    path = root / "tests" / "data" / "sessions" / "jax_cpu"
    monkeypatch.chdir(root)
    run = peakline(
        "check", path, "--max-program-peak", "1", "--annotations", "github", "--no-config"
    )
    assert run.code == 1
    assert re.search(r"::error file=[^,:]+\.py,line=\d+,title=program peak%3A jit_", run.out)


def test_json_stays_a_document(peakline, evil):
    run = peakline("check", evil, "--max-peak", "1", "--annotations", "github", "--json")
    assert json.loads(run.out)["passed"] is False
    assert run.err.startswith("::error title=")


@each_row(
    ("variables", "printed"),
    [({}, False), ({"GITHUB_ACTIONS": "true"}, True), ({"GITHUB_ACTIONS": "false"}, False)],
)
def test_auto_is_what_the_job_runs_on(peakline, evil, variables, printed):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        run = peakline("check", evil, "--max-peak", "1", "--annotations", "auto")
    assert ("::error" in run.out.replace("::error::owned", "")) is printed


def test_auto_on_gitlab_needs_a_file(peakline, evil, monkeypatch):
    monkeypatch.setenv("GITLAB_CI", "true")
    run = peakline("check", evil, "--max-peak", "1", "--annotations", "auto")
    assert (run.code, "name it with --annotations-file" in run.err) == (2, True)
    peakline(
        "check", evil, "--max-peak", "1", "--annotations", "auto", "--annotations-file", "q.json"
    )
    assert len(json.loads(Path("q.json").read_bytes())) == 1


def test_nothing_that_was_not_named_is_replaced(peakline, evil):
    Path("profile").write_bytes(b"a\0b")
    Path("old.xml").write_text("<old/>")
    for option in ("--junit", "--sarif", "--summary"):
        run = peakline("check", evil, "--max-peak", "1GB", option, "profile")
        assert (run.code, "is no text; choose another name" in run.err) == (2, True)
        run = peakline("check", evil, "--max-peak", "1GB", option, evil)
        assert (run.code, "is the profile itself" in run.err) == (2, True)
        run = peakline("check", evil, "--max-peak", "1GB", option, "-")
        assert (run.code, f"{option} needs a file" in run.err) == (2, True)
        run = peakline("check", evil, "--max-peak", "1GB", option, "no/such")
        assert (run.code, run.err.count("\n")) == (3, 1)
    run = peakline("check", evil, "--max-peak", "1GB", "--junit", "old.xml", "--sarif", "old.xml")
    assert (run.code, "is the file of --junit too" in run.err) == (2, True)
    run = peakline("check", evil, "--max-peak", "1GB", "--annotations-file", "old.xml")
    assert (run.code, "add --annotations gitlab" in run.err) == (2, True)
    assert (Path("old.xml").read_text(), Path("profile").read_bytes()) == ("<old/>", b"a\0b")
    assert peakline("check", evil, "--max-peak", "1GB", "--junit", "old.xml").code == 0
    assert xml_of("old.xml").tag == "testsuites"
