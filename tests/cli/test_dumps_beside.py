"""A directory that holds XLA's dumps and something else: a log directory, a session, a log."""

import json
import shutil

import pytest
from tests.analysis.hlo_programs import TEMPORARY, dump, program, value

import peakline as package

READ = "{}: the profile has no compiled programs; it is read with those dumped there"


@pytest.fixture
def both(sessions, tmp_path):
    """A copy of a session with a program dumped into its log directory."""

    def make(name, place=""):
        path = shutil.copytree(sessions / name, tmp_path / "both")
        (folder,) = path.glob(place) if place else (path,)
        dump(folder, program("jit_odd", value(TEMPORARY, "tanh", (1024, 256), line=14), number=6))
        return folder

    return make


SESSION = "plugins/profile/*"


@pytest.mark.parametrize("place", ["", SESSION])
def test_a_profile_without_programs_gets_those_dumped_beside_it(peakline, both, place):
    path = both("tf2_cnn", place)
    run = peakline("programs", path, "--json")
    assert (run.code, run.err.splitlines()) == (0, [f"peakline: {READ.format(path)}"])
    document = json.loads(run.out)
    assert [one["module"] for one in document["modules"]] == ["jit_odd"]
    assert document["profile"]["format"] == "xplane"
    # The profile answers too, and Python reads the same.
    assert "bfc_cpu_allocator_for_gpu" in peakline("memory", path).out
    with package.open(path) as profile:
        assert profile.sql("select name from hlo_modules").to_pylist() == [{"name": "jit_odd"}]
        assert profile.columns("allocator_events").rows > 0


def test_a_profile_with_programs_has_its_own(peakline, both):
    path = both("jax_cpu")
    run = peakline("programs", path)
    assert (run.code, run.err) == (0, "")
    assert "jit_train_step(28)" in run.out
    assert "jit_odd" not in run.out
    with package.open(path) as profile:
        assert "jit_odd" not in profile.table("hlo_modules")["name"].to_pylist()
    # Where they are wanted instead, the dump counts, not the profile beside it.
    run = peakline("memory", failed_log(path), "--programs", path)
    assert "jit_odd(6) has an allocation of exactly 1.0 MiB" in run.out


def failed_log(path):
    log = path / "train.log"
    log.write_text(
        "E0528 x.cc:1] RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1048576 bytes.\n"
    )
    return log


def test_a_log_beside_dumps_is_named_with_what_to_type(peakline, tmp_path):
    odd = program("jit_odd", value(TEMPORARY, "tanh", (1024, 256), line=14), number=6)
    path = dump(tmp_path / "a dump", odd)
    (path / "module_0006.jit_odd.thunks.txt").write_text("written by XLA")
    assert peakline("memory", path).err == ""
    log = failed_log(path)
    run = peakline("memory", path)
    words = f"peakline memory '{log}' --programs '{path}'"
    assert run.err == (
        f"peakline: {path}: only the dumped programs are read; a log beside them with its buffers: "
        f"{words}\n"
    )
    assert "needs    1.0 MiB" in run.out
    run = peakline("memory", log, "--programs", path)
    assert (run.code, run.err) == (0, "")
    assert "jit_odd(6) has an allocation of exactly 1.0 MiB" in run.out
    (path / "second.txt.gz").write_bytes(b"")
    assert "a log beside them (and 1 more)" in peakline("programs", path).err


def test_what_xprof_wrote_beside_a_profile_is_the_profile_s(peakline, both):
    path = both("tf2_cnn", SESSION)
    (module,) = path.glob("module_*")
    module.rename(path / "jit_odd(6).hlo_proto.pb")
    run = peakline("programs", path)
    assert (run.code, run.err) == (0, "")
    assert "jit_odd(6)" in run.out
