"""Log directories by names that do not tell where they are."""

from tests.each_row import each_row
from tests.service.http_client import problem, serving

from peakline import __version__
from peakline.service.access import root_names


@each_row(
    ("roots", "names"),
    [
        (["/srv/logs"], ["logs"]),
        (["/srv/logs/plugins/profile"], ["logs"]),
        (["/srv/logs/", "/srv/./logs"], ["logs"]),
        (["/a/logs", "/b/logs", "/c"], ["a/logs", "b/logs", "c"]),
        (["/a/x/logs", "/b/x/logs"], ["a/x/logs", "b/x/logs"]),
        (["/logs", "/a/logs"], ["logs", "a/logs"]),
        (["s3://bucket/team/runs", "gs://other/runs"], ["team/runs", "other/runs"]),
        (["s3://bucket"], ["bucket"]),
        (["/"], ["logs"]),
        (["/plugins/profile"], ["profile"]),
    ],
)
def test_a_name_is_as_much_of_the_end_as_tells_it_from_the_others(roots, names):
    result = root_names(roots)
    assert list(result) == names
    assert set(result.values()) <= set(roots)


def test_the_server_tells_its_roots_and_takes_their_names(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "plugins" / "profile" / f"of_{name}").mkdir(parents=True)
        (tmp_path / name / "plugins" / "profile" / f"of_{name}" / "h.xplane.pb").touch()
    roots = tmp_path / "one", tmp_path / "two"
    with serving(
        tmp_path, *roots, read_only=True, profiler_port=9012, workers={"b": "b:1", "a": "a:1"}
    ) as face:
        answer = face.client.get("/api/server")
        assert answer.json() == {
            "version": __version__,
            "roots": ["one", "two"],
            "read_only": True,
            "max_upload_bytes": 4 << 30,
            "max_capture_s": 600.0,
            "profiler_port": 9012,
            "workers": ["a", "b"],
            "source": None,
            "source_is_logdir": False,
        }
        assert str(tmp_path) not in answer.text
        (listed,) = face.client.get("/api/sessions", params={"root": "two"}).json()
        assert listed["session_id"] == "of_two"
        problem(face.client.get("/api/sessions"), 400, "INVALID_ARGUMENT")
        problem(
            face.client.get("/api/sessions", params={"root": "three"}), 403, "PERMISSION_DENIED"
        )
