"""What a server for one reader needs: no gRPC face, and files that lie elsewhere."""

import shutil
import threading
import urllib.request

import pytest
from tests.service.conftest import SESSIONS
from tests.service.server_here import server_here

from peakline.errors import ForbiddenError
from peakline.service.access import Access
from peakline.service.settings import Settings

CNN = SESSIONS["tf2_cnn"]


@pytest.fixture
def elsewhere(sample_logdir, tmp_path):
    """A file outside of what is served."""
    (tmp_path / "elsewhere").mkdir()
    (sample,) = (sample_logdir / "plugins" / "profile" / CNN).iterdir()
    return str(shutil.copy(sample, tmp_path / "elsewhere"))


@pytest.fixture
def logdir(elsewhere, tmp_path):
    """A log directory whose only session is a link to that file."""
    session = tmp_path / "logs" / "plugins" / "profile" / "mine"
    session.mkdir(parents=True)
    (session / "vm.xplane.pb.gz").symlink_to(elsewhere)
    return tmp_path / "logs"


def hosts_of(access):
    return [file.host for file in access.host_files(access.run("", "mine"))]


def test_a_link_to_a_linked_file_is_followed(logdir, elsewhere):
    access = Access(Settings(roots=(str(logdir),), linked=(elsewhere,)))
    assert hosts_of(access) == ["vm"]
    assert access.confine(str(logdir / "plugins/profile/mine/vm.xplane.pb.gz")) == elsewhere


def test_a_link_to_any_other_file_is_not(logdir, elsewhere, tmp_path):
    beside = str(shutil.copy(elsewhere, tmp_path / "elsewhere" / "beside.xplane.pb.gz"))
    for linked in ((), (beside,)):
        access = Access(Settings(roots=(str(logdir),), linked=linked))
        assert hosts_of(access) == []
        with pytest.raises(ForbiddenError):
            access.confine(str(logdir / "plugins/profile/mine/vm.xplane.pb.gz"))


def test_the_folder_of_a_linked_file_is_no_log_directory(logdir, elsewhere, tmp_path):
    access = Access(Settings(roots=(str(logdir),), linked=(elsewhere,)))
    with pytest.raises(ForbiddenError):
        access.repository(str(tmp_path / "elsewhere"))


def test_a_server_may_have_no_grpc_face(logdir):
    before = set(threading.enumerate())
    with server_here(logdir, grpc_port=None) as server:
        assert server.grpc_port is None
        assert server.announcement() == f"serving {logdir} (1 session) on {server.url}"
        with urllib.request.urlopen(f"{server.url}/healthz") as answer:  # noqa: S310
            assert answer.status == 200
        names = {thread.name.partition("_")[0] for thread in {*threading.enumerate()} - before}
        assert "http" in names
        assert names.isdisjoint({"grpc", "grpc-health", "grpc-reflection"})
