"""Pages of the list of sessions, against the whole list and plain loops over it."""

import os
import re

import pytest
from tests.service.http_client import serving

MANY = 60
SORTS = ("name", "-name", "modified", "-modified", "bytes", "-bytes", "hosts", "-hosts")


@pytest.fixture(scope="module")
def face(root, tmp_path_factory):
    """Sixty sessions of one to three hosts, of different sizes and times; one cannot be read."""
    place = tmp_path_factory.mktemp("pages")
    graph = (root / "tests/data/graph_def/frozen.pb").read_bytes()
    for number in range(MANY):
        session = place / "logs/plugins/profile" / f"Run_{number * 7 % 100}"
        session.mkdir(parents=True)
        for host in range(1 + number % 3):
            file = session / f"worker-{(number + host) % 11}.profile"
            file.write_bytes(graph + bytes(number * 13 % 40))
            os.utime(file, (1_700_000_000 + number * 31 % 47, 1_700_000_000 + number * 31 % 47))
        os.utime(session, (1_700_000_000 + number, 1_700_000_000 + number))
    (place / "logs/plugins/profile/Run_0/worker-0.profile").write_bytes(b"no profile at all")
    with serving(place, place / "logs") as running:
        yield running


def page(face, **request):
    """A page, how many sessions match, and how many there are."""
    answer = face.client.get("/api/sessions", params={"tools": "false", **request})
    assert answer.status_code == 200, answer.text
    counts = (int(answer.headers[f"Peakline-{name}"]) for name in ("Rows", "Sessions"))
    return answer.json(), *counts


def names(sessions):
    return [each["session_id"] for each in sessions]


def natural(session):
    parts = re.findall(r"\d+|\D+", session["session_id"].lower())
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


@pytest.fixture(scope="module")
def everyone(face):
    return page(face)[0]


def test_pages_together_are_the_whole_list(face, everyone):
    whole = face.client.get("/api/sessions").json()
    assert [{**each, "tools": None} for each in whole] == everyone
    assert names(whole) == [f"Run_{number * 7 % 100}" for number in reversed(range(MANY))]
    result = []
    for offset in range(0, MANY + 17, 17):
        rows, *counts = page(face, offset=offset, limit=17)
        assert counts == [MANY, MANY]
        result += rows
    assert result == everyone
    assert page(face, limit=0) == ([], MANY, MANY)


def test_a_page_with_tools_has_those_of_its_rows(face):
    answer = face.client.get("/api/sessions", params={"offset": MANY - 2, "limit": 2})
    assert [bool(each["tools"]) for each in answer.json()] == [True, False]
    assert "session Run_0: " in answer.headers["Peakline-Notes"]
    alone = face.client.get("/api/sessions/Run_0")
    assert alone.headers["Peakline-Notes"] == answer.headers["Peakline-Notes"]
    assert alone.json()["tools"] == []


def test_nobody_looks_into_profiles_that_a_page_does_not_ask_about(face, monkeypatch):
    looked = []
    look = face.analysis.look
    monkeypatch.setattr(
        face.analysis, "look", lambda session: looked.append(session.session_id) or look(session)
    )
    page(face, search="worker-3", sort="-bytes")
    assert looked == []
    face.client.get("/api/sessions", params={"limit": 3})
    assert len(looked) == 3


@pytest.mark.parametrize("sort", SORTS)
def test_rows_are_sorted(face, everyone, sort):
    key = sort.removeprefix("-")
    value = {"name": natural, "hosts": lambda each: len(each["hosts"])}.get(
        key, lambda each: each[key]
    )
    shown = page(face, sort=sort)[0]
    assert [value(each) for each in shown] == sorted(
        map(value, everyone), reverse=sort.startswith("-")
    )
    assert sorted(names(shown)) == sorted(names(everyone))


@pytest.mark.parametrize(
    "search", ["run_4", "WORKER-10", "worker-1", "worker-3 run_7", "  ", "worker-3 worker-4", "no"]
)
def test_a_search_finds_names_and_hosts(face, everyone, search):
    def has(session):
        text = "\n".join([session["session_id"], *session["hosts"]]).lower()
        return all(word in text for word in search.lower().split())

    expected = list(filter(has, everyone))
    assert page(face, search=search) == (expected, len(expected), MANY)
    assert page(face, search=search, offset=1, limit=2)[0] == expected[1:3]
    assert page(face, search=search, sort="oldest")[0] == expected[::-1]


def test_a_new_host_is_found(face):
    file = face.log_path.parent / "logs/plugins/profile/Run_7/latecomer.profile"
    assert page(face, search="latecomer")[1] == 0
    file.write_bytes(b"x")
    try:
        assert names(page(face, search="latecomer")[0]) == ["Run_7"]
    finally:
        file.unlink()
        os.utime(file.parent, (1_700_000_001, 1_700_000_001))
    assert page(face, search="latecomer")[1] == 0


@pytest.mark.parametrize(
    "asked",
    [{"limit": 1001}, {"limit": -1}, {"offset": -1}, {"sort": "size"}, {"search": "x" * 501},
     {"tools": "perhaps"}],
)  # fmt: skip
def test_what_is_no_page_is_refused(face, asked):
    assert face.client.get("/api/sessions", params=asked).status_code == 400
