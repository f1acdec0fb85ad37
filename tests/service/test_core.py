"""The core without a face: uploads, SQL, what callers are told."""

import gzip
import json
import tempfile
import threading
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.waiting import HANG_S

from peakline.deadline import Deadline, current_deadline, within
from peakline.errors import (
    CancelledError,
    DeadlineError,
    ExistsError,
    ForbiddenError,
    InputError,
    NotFoundError,
    PeaklineError,
    UnknownFormatError,
    UsageError,
)
from peakline.service.capturing import at_most
from peakline.service.core import Wording, one_line
from peakline.service.uploading import ExpandsError
from peakline.tables.sql_process.answer import Form

JSON = Form("json")

DATA = Path(__file__).parent.parent / "data"
TMP = tempfile.gettempdir()


def blocks(content, size=100_000):
    return (content[start : start + size] for start in range(0, len(content), size))


def files_under(logdir):
    return sorted(str(path.relative_to(logdir)) for path in logdir.glob("**/*") if path.is_file())


@pytest.fixture
def xspace():
    place = DATA / "sessions/tf2_multihost/plugins/profile" / SESSIONS["tf2_multihost"]
    return (place / "localhost_47507.xplane.pb").read_bytes()


# -- uploads --------------------------------------------------------------------------------------


def test_an_upload_becomes_a_session_with_its_tools(parts, empty, xspace):
    made = parts(empty)
    file = made.analysis.uploads.upload("", "mine", "worker:1", blocks(xspace))
    assert files_under(empty) == ["plugins/profile/mine/worker_1.xplane.pb"]
    assert Path(file.path).read_bytes() == xspace
    ((session, tools),) = made.analysis.listing("").sessions
    assert (session.session_id, "memory_profile" in tools) == ("mine", True)
    assert made.analysis.tool_data("", "mine", "worker:1", "memory_profile", {}).content
    assert f"peakline_upload_bytes_total {len(xspace):.1f}" in (made.metrics.render().decode())


@pytest.mark.parametrize(
    ("file", "suffix"),
    [
        ("graph_def/frozen.pb", ".profile"),
        ("memory_log/tf1_control_flow.log.gz", ".profile"),
        ("run_metadata/tf1_cnn_2.pb.gz", ".profile"),
        ("sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz", ".xplane.pb.gz"),
    ],
)
def test_every_format_can_be_uploaded_and_asked(parts, empty, file, suffix):
    made = parts(empty)
    made.analysis.uploads.upload("", "", "h", blocks((DATA / file).read_bytes(), 1 << 10))
    ((session, tools),) = made.analysis.listing("").sessions
    assert tools
    assert files_under(empty) == [f"plugins/profile/{session.session_id}/h{suffix}"]
    assert "warnings" in made.analysis.tables("", session.session_id, "")


@each_row(
    ("content", "error"),
    [
        (b"", InputError),
        (b"PK\x03\x04" + bytes(100), UnknownFormatError),
        (bytes(range(256)) * 9, UnknownFormatError),
        (b"\x1f\x8b" + bytes(100), InputError),
        (gzip.compress(b""), InputError),
        (gzip.compress(bytes(range(128, 256)) * 100), UnknownFormatError),
    ],
)
def test_what_is_no_profile_is_refused_and_leaves_nothing(parts, empty, content, error):
    made = parts(empty)
    with pytest.raises(error, match=r"^the upload is "):
        made.analysis.uploads.upload("", "mine", "h", blocks(content))
    assert list(empty.iterdir()) == []
    assert made.analysis.uploads.gate.running == 0


@pytest.mark.parametrize("members", [1, 4])
def test_a_gzip_file_that_expands_too_far_is_not_kept(parts, empty, members):
    log = b"".join(path.read_bytes() for path in [DATA / "memory_log/tf1_control_flow.log.gz"])
    bomb = log + b"".join(gzip.compress(bytes((8 << 20) // members)) for _ in range(members))
    size = len(gzip.decompress(bomb))
    made = parts(empty, max_unpacked_bytes=size - 1)
    with pytest.raises(ExpandsError, match=rf"more than {size - 1} bytes \(--max-unpacked\)"):
        made.analysis.uploads.upload("", "mine", "h", blocks(bomb))
    assert files_under(empty) == []
    made = parts(empty, max_unpacked_bytes=size)
    made.analysis.uploads.upload("", "mine", "h", blocks(bomb))


def test_what_a_file_may_expand_to_counts_when_it_is_opened_too(parts, empty):
    log = (DATA / "memory_log/tf1_control_flow.log.gz").read_bytes()
    parts(empty).analysis.uploads.upload("", "mine", "h", blocks(log))
    made = parts(empty, max_unpacked_bytes=1000)
    with pytest.raises(InputError, match="more than 1000 bytes; --max-unpacked"):
        made.analysis.tables("", "mine", "")


def test_a_damaged_gzip_file_is_kept_as_far_as_it_is_whole(parts, empty):
    log = (DATA / "memory_log/tf1_control_flow.log.gz").read_bytes()
    made = parts(empty)
    for name, content in {"cut": log[:-200], "more": log + b"junk"}.items():
        made.analysis.uploads.upload("", name, "h", blocks(content, 64))
        assert made.analysis.tools("", name)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_text_without_anything_to_read_is_no_profile(parts, empty, pack):
    made = parts(empty)
    lines = b"step 1 of 2: loss 0.5\n" * 100_000
    for content in (b"junkjunk", lines):
        with pytest.raises(UnknownFormatError, match="without a memory record"):
            made.analysis.uploads.upload("", "mine", "h", blocks(pack(content)))
        assert files_under(empty) == []
    log = gzip.decompress((DATA / "memory_log/tf1_control_flow.log.gz").read_bytes())
    record = next(line for line in log.splitlines() if b"__LOG_MEMORY__" in line)
    report = b"RuntimeError: Resource exhausted: Out of memory while trying to allocate 8 bytes.\n"
    made.analysis.uploads.upload("", "record", "h", blocks(pack(lines + record)))
    made.analysis.uploads.upload("", "report", "h", blocks(pack(lines + report)))
    for name in ("record", "report"):
        assert made.analysis.tables("", name, "")


def test_new_sessions_go_only_where_a_log_directory_is(parts, empty, xspace):
    made = parts(empty)

    def upload(root, name):
        return made.analysis.uploads.upload(str(root), name, "h", blocks(xspace)).path

    assert upload(empty / "plugins" / "profile", "a") == f"{empty}/plugins/profile/a/h.xplane.pb"
    (empty / "train").mkdir()
    assert upload(empty / "train", "b") == f"{empty}/train/plugins/profile/b/h.xplane.pb"
    (empty / "eval").mkdir()
    assert upload(empty / "eval/plugins/profile", "c").startswith(f"{empty}/eval/plugins/profile/c")
    before = files_under(empty)
    session = empty / "plugins" / "profile" / "a"
    (session / "deep").mkdir()
    for root in (session, session / "deep", session.parent / "new/x", session / "plugins/profile"):
        with pytest.raises(UsageError, match="inside the sessions"):
            upload(root, "inner")
    for root in ("nosuch", "nosuch/plugins/profile", "train/more"):
        with pytest.raises(NotFoundError, match="no such directory"):
            upload(empty / root, "inner")
    assert files_under(empty) == before
    assert not (empty / "nosuch").exists()


def test_sessions_that_lie_directly_in_the_root_are_no_place_for_others(parts, empty, xspace):
    (empty / "one").mkdir()
    (empty / "one" / "h.xplane.pb").write_bytes(xspace)
    made = parts(empty)
    with pytest.raises(UsageError, match="inside the sessions"):
        made.analysis.uploads.upload(str(empty / "one"), "inner", "h", blocks(xspace))
    file = made.analysis.uploads.upload("", "two", "h", blocks(xspace))
    assert file.path == f"{empty}/two/h.xplane.pb"


def test_a_host_that_is_a_link_out_is_left_out_and_named(parts, empty, xspace, tmp_path):
    secret = tmp_path / "secret" / "plugins" / "profile" / "hidden"
    secret.mkdir(parents=True)
    (secret / "h.xplane.pb").write_bytes(xspace)
    sessions = empty / "plugins" / "profile"
    for name in ("mixed", "only"):
        (sessions / name).mkdir(parents=True)
        (sessions / name / "out.xplane.pb").symlink_to(secret / "h.xplane.pb")
    (sessions / "mixed" / "good.xplane.pb").write_bytes(xspace)
    (sessions / "hidden").symlink_to(secret)
    analysis = parts(empty).analysis
    listed = {session.session_id: list(tools) for session, tools in analysis.listing("").sessions}
    assert set(listed) == {"mixed", "only"}
    assert listed["mixed"] == analysis.tools("", "mixed")
    assert listed["only"] == []
    answer = analysis.tool_data("", "mixed", "", "trace_viewer", {})
    assert answer.notes == ("host out: a link leads out of the served log directories",)
    assert answer.content == analysis.tool_data("", "mixed", "good", "trace_viewer", {}).content
    assert "events" in analysis.tables("", "mixed", "")
    for session, host in (("mixed", "out"), ("only", ""), ("only", "out"), ("hidden", "")):
        with pytest.raises(ForbiddenError):
            analysis.tool_data("", session, host, "trace_viewer", {})
    with pytest.raises(NotFoundError, match=r"there is: (mixed, only|only, mixed)$"):
        analysis.tools("", "nosuch")
    with pytest.raises(NotFoundError, match=r"there is: good$"):
        analysis.tables("", "mixed", "nosuch")


def test_an_upload_that_breaks_off_leaves_nothing(parts, empty, xspace):
    made = parts(empty)

    def broken():
        yield xspace * 20  # more than what is looked at before writing begins
        raise CancelledError("the caller went away")

    with pytest.raises(CancelledError):
        made.analysis.uploads.upload("", "mine", "h", broken())
    assert files_under(empty) == []
    made.analysis.uploads.upload("", "mine", "h", blocks(xspace))


def test_an_upload_ends_at_the_deadline(parts, empty, xspace):
    made = parts(empty)
    with within(Deadline(0.0)), pytest.raises(DeadlineError):
        made.analysis.uploads.upload("", "mine", "h", blocks(xspace))
    assert files_under(empty) == []


def test_two_uploads_of_one_name_are_not_mixed(parts, empty, xspace):
    made = parts(empty)
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        yield xspace
        begun.set()
        assert go_on.wait(HANG_S)

    thread = threading.Thread(target=lambda: made.analysis.uploads.upload("", "mine", "h", slow()))
    thread.start()
    assert begun.wait(HANG_S)
    with pytest.raises(ExistsError, match="mine"):
        made.analysis.uploads.upload("", "mine", "other", blocks(xspace))
    go_on.set()
    thread.join(HANG_S)
    with pytest.raises(ExistsError, match="mine"):
        made.analysis.uploads.upload("", "mine", "other", blocks(xspace))
    assert files_under(empty) == ["plugins/profile/mine/h.xplane.pb"]


@each_row("name", ["..", "a/b", ".hidden", "a\x00", "x" * 300])
def test_uploads_take_names_only(parts, empty, xspace, name):
    made = parts(empty)
    for session, host in ((name, "h"), ("mine", name)):
        with pytest.raises(UsageError):
            made.analysis.uploads.upload("", session, host, blocks(xspace))
    with pytest.raises((ForbiddenError, UsageError)):
        made.analysis.uploads.upload(f"/tmp/{name}", "mine", "h", blocks(xspace))  # noqa: S108 (refused)
    assert list(empty.iterdir()) == []


# -- SQL ------------------------------------------------------------------------------------------


def test_sql_is_over_one_host_or_all(parts, sample_logdir):
    analysis = parts(sample_logdir).analysis
    session = SESSIONS["tf2_multihost"]
    query = "select count(*) n from allocator_events"
    result = {
        host: json.loads(analysis.sql("", session, host, query, JSON).content)[0]["n"]
        for host in ("localhost_47507", "localhost_56665")
    }
    assert result == {"localhost_47507": 326, "localhost_56665": 664}
    assert json.loads(analysis.sql("", session, "", query, JSON).content) == [{"n": 326 + 664}]
    with pytest.raises(NotFoundError):
        analysis.sql("", session, "other", query, JSON)


def test_sql_touches_no_file(parts, sample_logdir):
    analysis = parts(sample_logdir).analysis
    for query in ("select * from '/etc/passwd'", "copy planes to '/tmp/x'", "install httpfs"):
        with pytest.raises(Exception, match=r".") as caught:
            analysis.sql("", SESSIONS["tf2_cnn"], "vm", query, JSON)
        assert caught.value.grpc_status in ("FAILED_PRECONDITION", "INVALID_ARGUMENT")


# -- deadlines and words --------------------------------------------------------------------------


def test_the_nearer_of_two_deadlines_counts():
    with at_most(5):
        assert current_deadline().remaining() <= 5
        with at_most(1000):
            assert current_deadline().remaining() <= 5
        with at_most(0), pytest.raises(DeadlineError):
            current_deadline().check()


def test_whoever_cancels_the_outer_one_cancels_the_inner():
    with within(Deadline()) as outer, at_most(1000):
        outer.cancel()
        with pytest.raises(CancelledError):
            current_deadline().check()


@each_row(
    ("text", "line"),
    [
        ("two\nlines\tand more", "two lines and more"),
        ("nul \x00 bell \x07 escape \x1b[2J", "nul \\x00 bell \\x07 escape \\x1b[2J"),
        ("caf\u00e9 \u4e2d \ud800", "caf\\xe9 \\u4e2d \\ud800"),
        ("x" * 2000, "x" * 997 + "..."),
    ],
)
def test_a_line_is_printable_ascii(text, line):
    assert one_line(text) == line


def test_places_of_files_are_not_told(tmp_path):
    root = tmp_path / "logs"
    wording = Wording([str(root), "gs://bucket/logs", "/"])
    assert wording.line(f"{root}/plugins/profile/a/h.xplane.pb: damaged") == (
        "plugins/profile/a/h.xplane.pb: damaged"
    )
    assert wording.line(f"{root}: no sessions; see {root}.") == "(root): no sessions; see (root)."
    assert wording.line("gs://bucket/logs/x: gone, /etc/passwd stays") == (
        "x: gone, /etc/passwd stays"
    )
    assert wording.line("gs://bucket/logs2/x") == "gs://bucket/logs2/x"


def test_what_the_caller_wrote_is_told_as_it_was_written(tmp_path):
    wording = Wording([str(tmp_path)])
    place = f"{tmp_path}/h.pb"
    error = UsageError(f"'{tmp_path}  \u4e2d' is none, see {place}").quoting(
        f"'{tmp_path}  \u4e2d'"
    )
    assert wording.line(error) == f"'{tmp_path}  \\u4e2d' is none, see h.pb"
    assert wording.line(UsageError(str(error))).startswith("'(root) \\u4e2d' is none")


@each_row(
    "root",
    ["{tmp}/user4/outside", "file://{tmp}/x", "zip://x::file://{tmp}", "{root}\0", "s3://b{tmp}"],
)
def test_a_root_that_is_refused_is_told_as_it_was_named(parts, logdir, root):
    analysis = parts(logdir).analysis
    name = root.format(tmp=TMP, root=logdir)
    with pytest.raises(UsageError) as refused:
        analysis.listing(name)
    assert analysis.public_text(refused.value).startswith(repr(name))


@each_row("host", [f"unix:{TMP}/x", f"[{TMP}/a", f"a:{TMP}/b", TMP])
def test_a_host_that_is_none_is_told_as_it_was_named(parts, logdir, host):
    analysis = parts(logdir).analysis
    with pytest.raises(UsageError) as refused:
        analysis.captures.monitor([host], 10, 1, timestamp=False)
    result = analysis.public_text(refused.value)
    assert result.startswith(f"{host!r} is no host")
    assert result == str(refused.value)


def test_a_name_that_is_none_is_told_as_it_was_named(parts, logdir):
    analysis = parts(logdir).analysis
    for session_id, tool in (("..", "graph"), (SESSIONS["tf2_cnn"], f"{TMP}/x")):
        with pytest.raises(PeaklineError) as refused:
            analysis.tool_data("", session_id, "", tool, {})
        assert analysis.public_text(refused.value) == str(refused.value)
    with pytest.raises(UsageError) as refused:
        analysis.tool_data("", SESSIONS["tf2_cnn"], f"{TMP}/x", "graph", {})
    assert analysis.public_text(refused.value).startswith(f"'{TMP}/x' is no host: ")
    for parameters in ({"format": TMP}, {"max_snapshots": TMP}):
        with pytest.raises(UsageError) as refused:
            analysis.tool_data("", SESSIONS["tf2_cnn"], "", "memory_profile", parameters)
        assert repr(TMP) in analysis.public_text(refused.value)
