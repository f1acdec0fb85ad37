import json

from tests.each_row import each_row

import peakline as library


def test_the_bytes_are_the_tools_own(peakline, sessions, tmp_path):
    path = sessions / "tf2_cnn"
    with library.open(str(path)) as profile:
        expected = profile.tool("memory_profile").content
        proto = profile.tool("memory_profile", format="proto").content
    run = peakline("tool", "memory_profile", path)
    assert (run.code, run.out.encode()) == (0, expected)
    target = tmp_path / "out.pb"
    run = peakline("tool", "memory_profile", path, "--format", "proto", "-o", target)
    assert (run.code, run.out, target.read_bytes()) == (0, "", proto)


def test_parameters(peakline, sessions):
    path = sessions / "tf2_cnn"
    run = peakline("tool", "memory_profile", path, "-p", "max_snapshots=7", "-p", "version=1")
    (allocator,) = json.loads(run.out)["memoryProfilePerAllocator"].values()
    assert len(allocator["sampledTimelineSnapshots"]) == 7


def test_list(peakline, sessions):
    run = peakline("tool", "--list", sessions / "tf2_cnn")
    assert (run.code, run.err) == (0, "")
    assert "memory_profile" in run.out.splitlines()


@each_row(
    ("words", "code", "message"),
    [
        (["-p", "version"], 2, "expected KEY=VALUE"),
        (["-p", "=1"], 2, "expected KEY=VALUE"),
        (["-p", "version=1", "-p", "version=0"], 2, "given twice"),
        (["-p", "bogus=1"], 2, "no parameter 'bogus'"),
        (["-p", "format=json"], 2, "no parameter 'format'"),
        (["-p", "version=9"], 2, "version"),
        (["--format", "xml"], 2, "no format 'xml'"),
        (["--host", "other"], 3, "no host 'other'"),
        (["--session", "other"], 3, "no session 'other'"),
    ],
)
def test_errors(peakline, sessions, words, code, message):
    run = peakline("tool", "memory_profile", sessions / "tf2_cnn", *words)
    assert (run.code, run.out, run.err.count("\n")) == (code, "", 1)
    assert message in run.err


def test_an_unknown_tool(peakline, sessions):
    run = peakline("tool", "nonsense", sessions / "tf2_cnn")
    assert (run.code, run.out) == (3, "")
    assert "no tool 'nonsense'; there is: " in run.err


def test_a_file_is_replaced_only_by_force(peakline, sessions, tmp_path):
    target = tmp_path / "out.json"
    target.write_text("mine")
    words = ["tool", "memory_profile", sessions / "tf2_cnn", "-o", target]
    run = peakline(*words)
    assert (run.code, target.read_text()) == (2, "mine")
    assert "use --force" in run.err
    assert peakline(*words, "--force").code == 0
    assert json.loads(target.read_text())["numHosts"] == 1


def test_the_profile_itself_is_never_replaced(peakline, sessions, tmp_path):
    (source,) = (sessions / "tf2_cnn").rglob("*.gz")
    copy = tmp_path / "vm.xplane.pb.gz"
    copy.write_bytes(source.read_bytes())
    run = peakline("tool", "memory_profile", copy, "-o", copy, "--force")
    assert run.code == 2
    assert "is the profile itself" in run.err
    assert copy.read_bytes() == source.read_bytes()
