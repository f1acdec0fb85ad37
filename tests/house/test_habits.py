"""What contributors are asked for is there, in the form that is read."""

import re
import shlex
import tomllib

import yaml


def test_a_fragment_of_the_changelog_has_a_name_a_kind_and_a_sentence(root):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    kinds = {entry["directory"] for entry in project["tool"]["towncrier"]["type"]}
    for path in (root / "changelog.d").iterdir():
        if path.name != "README.md":
            name, kind, suffix = path.name.rsplit(".", 2)
            assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name), path.name
            assert (kind in kinds, suffix) == (True, "md"), path.name
            text = path.read_text("utf-8")
            assert re.fullmatch(r"[^-*#\s].*\.\n", text, re.DOTALL), path.name


def test_the_changelog_has_the_place_where_fragments_go(root):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    text = (root / "CHANGELOG.md").read_text("utf-8")
    assert text.count(project["tool"]["towncrier"]["start_string"]) == 1


def test_hooks_run_what_is_there(root):
    hooks = yaml.safe_load((root / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    assert len(entries) >= 3
    for entry in entries:
        words = shlex.split(entry)
        assert words[0] == ".venv/bin/python"
        assert words[1:3] == ["-m", "ruff"] or (root / words[1]).is_file()


def test_templates_of_issues_are_forms(root):
    forms = [
        yaml.safe_load(path.read_text("utf-8"))
        for path in (root / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
        if path.name != "config.yml"
    ]
    assert len(forms) == 3
    for form in forms:
        assert {"name", "description", "body"} <= form.keys()
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_walks_name_files_that_exist(root):
    text = (root / "CONTRIBUTING.md").read_text("utf-8").partition("## Five walks")[2]
    names = re.findall(
        r"`((?:src/peakline|tests|scripts|formats|trace|timing|toolbox)/[\w/.]+)`", text
    )
    assert len(names) > 15
    for name in names:
        if not re.search("[A-Z]{2}", name):
            assert (root / name).exists() or (root / "src/peakline" / name).exists(), name
