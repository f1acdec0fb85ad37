"""Where `peakline view` begins in directories as PyTorch users have them."""

import pytest
from tests.repository.places import put

from peakline.repository import Repository
from peakline.service.view_place import find_place

TRACE = b'{"traceEvents": []}'


@pytest.mark.parametrize(
    ("files", "logdir", "session", "listed"),
    [
        (["vm_7.17.pt.trace.json"], "made", "logs", ["logs"]),
        (["a/vm.17.pt.trace.json"], "logs", "a", ["a"]),
        (["a/vm.17.pt.trace.json", "b/vm.18.pt.trace.json"], "logs", None, ["a", "b"]),
        (["vm.17.pt.trace.json", "b/vm.18.pt.trace.json"], "logs", None, ["b", "logs"]),
        (["exp/v0/vm.17.pt.trace.json"], "logs/exp", "v0", ["v0"]),
        (["exp/v0/a.1.pt.trace.json", "exp/v1/a.2.pt.trace.json"], "logs/exp", None, ["v0", "v1"]),
        (["step.json", "notes.md"], "made", "step.json", ["step.json"]),
    ],
)
def test_where_a_view_begins(tmp_path, files, logdir, session, listed):
    put(tmp_path / "logs", *files, content=TRACE)
    (tmp_path / "made").mkdir()
    place = find_place(str(tmp_path / "logs"), None, None, str(tmp_path / "made"))
    assert (place.logdir, place.session) == (str(tmp_path / logdir), session)
    assert sorted(one.name for one in Repository(place.logdir).sessions()) == listed


def test_a_nested_run_that_is_named(tmp_path):
    logs = tmp_path / "logs"
    put(logs, "exp/v0/a.1.pt.trace.json", "exp/v0/b.1.pt.trace.json", "v1/a.2.pt.trace.json")
    place = find_place(str(logs), "exp/v0", "b", str(tmp_path))
    assert (place.logdir, place.session, place.host) == (str(logs / "exp"), "v0", "b")
