"""Programs that XProf wrote into a session (``NAME(ID).hlo_proto.pb``) are that session's."""

import gzip
import shutil

import pytest
from tests.memory.hlo_programs import TEMPORARY, program, value

import peakline
from peakline.formats.hlo_dump.listing import is_xprof_program
from peakline.service.view_place import find_place

ODD = program("jit_odd", value(TEMPORARY, "tanh", (1024, 256), line=14), number=6)


@pytest.fixture
def session(sessions, tmp_path):
    """A copy of a recorded session's directory."""

    def make(name="jax_cpu"):
        (folder,) = shutil.copytree(sessions / name, tmp_path / name).glob("plugins/profile/*")
        return folder

    return make


def labels(profile):
    programs = profile.programs()
    return [programs.label(number) for number in range(len(programs))]


def written(folder):
    """Writes the session's own programs beside it as XProf does; gives their names and bytes."""
    with peakline.open(folder) as profile:
        result = dict(profile.hlo_modules())
    for label, data in result.items():
        (folder / f"{label}.hlo_proto.pb").write_bytes(data)
    return result


def test_what_the_profile_holds_too_is_shown_once(session):
    folder = session()
    own = written(folder)
    (folder / "jit_train_step.hlo_proto.pb").write_bytes(own["jit_train_step(28)"])
    (folder / "NO_MODULE.hlo_proto.pb").write_bytes(b"")
    with peakline.open(folder) as profile:
        assert labels(profile) == list(own)
        before = profile.table("hlo_instructions")
    for path in folder.glob("*.hlo_proto.pb"):
        path.unlink()
    with peakline.open(folder) as profile:
        assert before.equals(profile.table("hlo_instructions"))
        assert not list(profile.warnings)


def test_others_come_after_the_profile_s_own(session):
    folder = session()
    own = written(folder)
    (folder / "jit_odd(6).hlo_proto.pb").write_bytes(ODD)
    # The same name with another number is another program; without one it is any of that name.
    (folder / "jit_odd(7).hlo_proto.pb").write_bytes(ODD)
    (folder / "jit_odd.hlo_proto.pb").write_bytes(ODD)
    (folder / "jit_alone.hlo_proto.pb").write_bytes(ODD)
    with peakline.open(folder) as profile:
        result = labels(profile)
        # A file's name without a number does not give one.
        more = ["jit_alone", "jit_odd(6)", "jit_odd(7)"]
        assert sorted(result[: len(own)]) == sorted(own)
        assert sorted(result[len(own) :]) == more
        rows = profile.sql("select module_id, name, program_id from hlo_modules").to_pylist()
        assert [row["program_id"] for row in rows][len(own) :].count(None) == 1
        counted = profile.sql(
            "select module_id, count(*) as many from hlo_instructions group by all order by all"
        ).to_pylist()
        assert [row["module_id"] for row in counted] == list(range(len(own) + 3))
        assert {row["many"] for row in counted[len(own) :]} == {1}
        assert profile.columns("events").rows > 0
        assert not list(profile.warnings)
        assert b"jit_odd" in profile.tool("memory_viewer", module_name="jit_odd(6)").content


@pytest.mark.parametrize("packed", [False, True])
def test_an_empty_profile_has_the_programs_beside_it(session, packed):
    folder = session()
    own = written(folder)
    with peakline.open(folder) as profile:
        instructions = profile.sql("select count(*) from hlo_instructions").to_pylist()
    for path in folder.glob("vm.xplane.pb*"):
        path.unlink()
    empty = folder / ("vm.xplane.pb.gz" if packed else "vm.xplane.pb")
    empty.write_bytes(gzip.compress(b"") if packed else b"")
    with peakline.open(folder) as profile:
        assert sorted(labels(profile)) == sorted(own)
        assert profile.sql("select count(*) from hlo_instructions").to_pylist() == instructions
        assert profile.columns("events").rows == 0
        (warning,) = profile.warnings
        assert (warning.kind, warning.count) == ("no_events", 1)
        assert warning.detail == (
            f"{empty.name} has no events; read are the {len(own)} compiled programs beside it"
        )
    with peakline.Repository(folder.parent.parent.parent) as repository:
        (result,) = repository.sessions()
        assert {"memory_viewer", "graph_viewer", "graph"} <= set(result.tools())
        assert b"jit_train_step" in result.tool("memory_viewer", program_id="28").content


def test_an_empty_profile_without_programs_stays_an_error(session):
    folder = session()
    for path in folder.glob("vm.xplane.pb*"):
        path.unlink()
    (folder / "vm.xplane.pb").write_bytes(b"")
    (folder / "NO_MODULE.hlo_proto.pb").write_bytes(b"")
    with pytest.raises(peakline.InputError, match="the file is empty"):
        peakline.open(folder)


def test_a_file_that_is_no_program_is_counted(session):
    folder = session("tf2_cnn")
    (folder / "jit_odd(6).hlo_proto.pb").write_bytes(ODD)
    (folder / "jit_empty(7).hlo_proto.pb").write_bytes(b"")
    (folder / "jit_text(8).hlo_proto.pb").write_bytes(b"no program at all\n")
    with peakline.open(folder) as profile:
        assert len(profile.sql("select module_id from hlo_instructions").to_pylist()) == 1
        assert ("hlo_unreadable", 2) in {(one.kind, one.count) for one in profile.warnings}


def test_a_session_that_got_programs_is_read_anew(session):
    folder = session("tf2_cnn")
    with peakline.Repository(folder.parent.parent.parent) as repository:
        (result,) = repository.sessions()
        assert "memory_viewer" not in result.tools()
        (file,) = result._session.hosts()
        before = file.stamp()
        (folder / "jit_odd(6).hlo_proto.pb").write_bytes(ODD)
        (file,) = result._session.hosts()
        assert file.stamp() != before
        assert b"jit_odd" in result.tool("memory_viewer", program_id="6").content


def test_a_view_of_the_session_alone_brings_its_programs(session, tmp_path):
    folder = session("tf2_cnn")
    (folder / "jit_odd(6).hlo_proto.pb").write_bytes(ODD)
    (file,) = folder.glob("vm.xplane.pb*")
    for number, path in enumerate((folder, file)):
        place = tmp_path / f"place{number}"
        place.mkdir()
        result = find_place(str(path), None, None, str(place))
        names = {one.name for one in (place / "plugins/profile" / result.session).iterdir()}
        assert names == {file.name, "jit_odd(6).hlo_proto.pb"}
        assert len(result.linked) == 2
        assert result.source in (None, str(file))


def test_the_files_of_one_session_are_named_as_xprof_does():
    assert is_xprof_program("jit_f(12190760917235803885).hlo_proto.pb")
    assert is_xprof_program("jit_f.hlo_proto.pb")
    for name in ("NO_MODULE.hlo_proto.pb", ".hlo_proto.pb", "jit_f.hlo.pb", "vm.xplane.pb"):
        assert not is_xprof_program(name)
