"""Every public name is in docs/api.md, says what it does, and what it raises."""

import inspect
import re
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location

import pytest

import peakline
from tests.each_row import each_row

PROSE = re.compile(r"\braises?\b|\bnever fails\b", re.IGNORECASE)
NEVER_FAIL = {"capture_deadline_s", "default_options", "default_session_ids", "is_held"}
CALLED = ("peakline", "peakline.report", "peakline.capture", "peakline.record", "peakline.figures")


@pytest.fixture(scope="module")
def reference(root):
    spec = spec_from_file_location("api_reference", root / "scripts" / "api_reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def entries(reference):
    """Each public name with its object: ``peakline.Profile``, ``peakline.Profile.sql``."""
    found = {}
    for place in reference.PLACES:
        module = import_module(place)
        for name in reference.names_of(place):
            found[f"{place}.{name}"] = value = getattr(module, name)
            if inspect.isclass(value):
                for member in reference.members_of(value):
                    found[f"{place}.{name}.{member}"] = inspect.getattr_static(value, member)
    return found


def test_every_public_name_is_on_the_page_and_has_a_docstring(entries, root):
    page = (root / "docs" / "api.md").read_text(encoding="utf-8")
    titles = set(re.findall(r"^#{3,4} (?:peakline\.(?:\w+\.)?)?([\w.]+)$", page, re.MULTILINE))
    titles |= set(re.findall(r"^\| `(\w+Error|CheckFailed)` \|", page, re.MULTILINE))
    missing, silent = [], []
    for name, value in entries.items():
        parts = name.split(".")
        own = ".".join(parts[-2:] if parts[-2][:1].isupper() else parts[-1:])
        missing += [] if own in titles else [name]
        silent += [] if inspect.getdoc(value) else [name]
    assert len(entries) > 100
    assert missing == []
    assert silent == []


def test_what_can_fail_says_how(entries, reference):
    """A function says what it raises, or its class does for all methods, or its module."""
    silent = []
    for name, value in entries.items():
        place = next(p for p in sorted(reference.PLACES, key=len)[::-1] if name.startswith(p))
        if place not in CALLED or not inspect.isroutine(value):
            continue
        if name.rpartition(".")[2] in NEVER_FAIL:
            continue
        about = [inspect.getdoc(value)]
        parent = entries.get(name.rpartition(".")[0])
        about.append(inspect.getdoc(parent) if parent else import_module(place).__doc__)
        silent += [] if any(PROSE.search(text or "") for text in about) else [name]
    assert silent == []


@each_row("place", ["peakline", "peakline.answers", "peakline.figures", "peakline.report"])
def test_dir_lists_exactly_the_public_names(place):
    module = import_module(place)
    assert [name for name in dir(module) if not name.startswith("__")] == [
        name for name in sorted(module.__all__) if not name.startswith("__")
    ]


def test_dir_of_a_profile_lists_what_users_ask(reference, root):
    with peakline.open(root / "tests" / "data" / "sessions" / "jax_cpu") as profile:
        listed = [name for name in dir(profile) if not name.startswith("__")]
        assert listed == reference.members_of(peakline.Profile)
        assert {"memory", "sql", "tables", "to_pandas"} <= set(listed)
        assert all(hasattr(profile, name) for name in dir(profile))
