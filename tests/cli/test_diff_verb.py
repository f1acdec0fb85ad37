import json

import pytest
from tests.analysis.records import alloc, events, free
from tests.profile.fake import FakeReader


@pytest.fixture
def two(monkeypatch, tmp_path):
    """Two paths that open as profiles with these allocator records."""

    def make(before, after):
        readers = {}
        for name, rows in (("before.pb", before), ("after.pb", after)):
            path = tmp_path / name
            path.write_bytes(b"x")
            readers[str(path)] = FakeReader({"allocator_events": events(rows)})
            readers[str(path)].path = str(path)
        monkeypatch.setattr("peakline.formats.open_reader", lambda path, **_: readers[path])
        return tuple(readers)

    return make


BEFORE = [
    alloc(1, 1024, op="net/MatMul", region_type="output", data_type="float", shape="[8,32]",
          allocator="GPU_0_bfc"),
    alloc(2, 512, op="old", allocator="GPU_0_bfc"),
]  # fmt: skip
AFTER = [
    alloc(1, 2048, op="net/MatMul", region_type="output", data_type="float", shape="[16, 32]",
          allocator="cuda:0"),
    alloc(2, 256, op="new", allocator="cuda:0"),
    alloc(1, 64, op="copy", allocator="cpu"),
]  # fmt: skip


def test_the_screen(peakline, two):
    before, after = two(BEFORE, AFTER)
    run = peakline("diff", before, after)
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
cpu (only after) peak 64 B, cuda:0 peak +768 B (+50.0%)
before  {before} (fake, host worker-0, 1.234 ns)
after   {after} (fake, host worker-0, 1.234 ns)

cpu (only after)
  peak  64 B

  live at the peak
  SIZE  COUNT  OP
  64 B      1  copy

cuda:0
  peak  1.5 KiB -> 2.2 KiB, +768 B (+50.0%)
  note: 'GPU_0_bfc' before and 'cuda:0' after are taken as one: both are GPU 0

  what changed at the peak
    CHANGE   BEFORE    AFTER  OP          REGION  TYPE   SHAPE     WHAT HAPPENED
  +1.0 KiB  1.0 KiB  2.0 KiB  net/MatMul  output  float  [16, 32]  same op, [8, 32] -> [16, 32]
    -512 B    512 B      0 B  old                                  gone
    +256 B      0 B    256 B  new                                  new
"""
    )


def test_the_json(peakline, two):
    before, after = two(BEFORE, AFTER)
    run = peakline("diff", before, after, "--json", "--allocator", "GPU_0_bfc")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert list(document) == [
        "before", "after", "allocators", "findings", "programs", "time", "warnings",
        "is_empty", "sentences",
    ]  # fmt: skip
    assert document["time"] is None
    assert (document["before"]["path"], document["after"]["path"]) == (before, after)
    assert document["findings"] == {"new": [], "gone": [], "worse": []}
    assert document["warnings"] == {"before": [], "after": []}
    (allocator,) = document["allocators"]
    groups = allocator.pop("groups")
    assert (allocator["before"]["peak_bytes"], allocator["after"]["peak_bytes"]) == (1536, 2304)
    assert (allocator["allocator"], allocator["peak_delta_bytes"]) == ("cuda:0", 768)
    assert groups[0] == {
        "op": "net/MatMul",
        "region_type": "output",
        "data_type": "float",
        "shape": "[16, 32]",
        "before_bytes": 1024,
        "after_bytes": 2048,
        "delta_bytes": 1024,
        "before_count": 1,
        "after_count": 1,
        "change": "shape",
        "was": {
            "op": "net/MatMul",
            "region_type": "output",
            "data_type": "float",
            "shape": "[8, 32]",
        },
        "text": "same op, [8, 32] -> [16, 32]",
    }
    assert sum(group["delta_bytes"] for group in groups) == 768


def test_nothing_changed(peakline, two):
    before, after = two(BEFORE, BEFORE)
    run = peakline("diff", before, after)
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0] == "nothing changed"
    assert len(run.out.splitlines()) == 3
    assert (
        json.loads(peakline("diff", before, after, "--json").out)["allocators"][0]["groups"] == []
    )


def test_an_allocator_that_neither_has(peakline, two):
    run = peakline("diff", *two(BEFORE, AFTER), "--allocator", "tpu")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert (
        "no allocator 'tpu' in either profile; did you mean 'cpu'? there is: GPU_0_bfc, cpu, cuda:0"
        in run.err
    )


def test_hostile_names_are_shown_as_text(peakline, two):
    evil = "[red]\x1b[2J\n"
    rows = [alloc(1, 99, op=evil, allocator=evil), free(1, allocator=evil)]
    run = peakline("diff", *two([alloc(1, 5, allocator=evil, op="a")], rows))
    assert run.code == 0
    assert "\x1b" not in run.out
    assert run.out.count("[red]\\x1b[2J\\n") == 2


def test_both_from_standard_input(peakline):
    run = peakline("diff", "-", "-")
    assert (run.code, run.out) == (2, "")
    assert "only one of the profiles can come from standard input" in run.err


def test_strict_looks_at_both(peakline, two):
    before, after = two([alloc(None, 5)], BEFORE)
    for paths in ((before, after), (after, before)):
        assert peakline("diff", *paths).code == 0
        run = peakline("diff", *paths, "--strict")
        assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
        assert "untracked_allocation (1)" in run.err


def test_a_doubled_batch_on_the_screen(peakline, root):
    programs = root / "tests" / "data" / "programs"
    names = ("doubled_batch_healthy", "doubled_batch")
    run = peakline("diff", *(programs / f"{name}.xplane.pb.gz" for name in names))
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[4:6] == [
        "bfc_cpu_allocator_for_gpu",
        "  peak                18.2 MiB -> 23.5 MiB, +5.3 MiB (+29.2%)",
    ]
    assert "  note: a dimension of 192 became 384 in 6 groups of buffers: +5.4 MiB" in lines
    assert (
        lines[lines.index("  what changed at the peak") + 2].split()
        == (
            "+3.2 MiB 1.8 MiB 5.0 MiB model/hidden/MatMul output float [384, 1024] "
            "same op, [192, 1024] -> [384, 1024]"
        ).split()
    )


def test_findings_that_are_new_and_gone(peakline, root):
    programs = root / "tests" / "data" / "programs"
    one, other = (programs / f"{n}.xplane.pb.gz" for n in ("leak_list_healthy", "leak_list"))
    out = peakline("diff", one, other).out
    assert "\nnew: warning: bfc_cpu_allocator_for_gpu: 768.0 KiB more stay in memory" in out
    assert "  growth per step     0 B -> 768.0 KiB, +768.0 KiB\n" in out
    out = peakline("diff", other, one).out
    assert "\ngone: warning: bfc_cpu_allocator_for_gpu: 768.0 KiB more stay in memory" in out


def test_a_profile_without_memory(peakline, root, sessions):
    other = root / "tests" / "data" / "programs" / "jax_list_20.pprof.pb.gz"
    run = peakline("diff", sessions / "jax_cpu", other)
    assert (run.code, run.err) == (0, "")
    assert "\nbefore: no memory events in this profile\n\ncpu:0 (only after)\n" in run.out
    run = peakline("diff", sessions / "jax_cpu", sessions / "jax_cpu")
    first, _, _, *rest = run.out.splitlines()
    assert first == "nothing changed"
    assert rest == [
        "", "before: no memory events in this profile",
        "", "after: no memory events in this profile",
    ]  # fmt: skip


def test_sessions_and_hosts_of_each(peakline, sessions):
    multi = sessions / "tf2_multihost"
    run = peakline("diff", multi, multi, "--json")
    assert run.code == 0
    document = json.loads(run.out)
    assert [one["host"] for one in document["hosts"]] == ["localhost_47507", "localhost_56665"]
    assert (document["only_before"], document["only_after"]) == ([], [])
    run = peakline("diff", multi, multi, "--host-after", "localhost_47507")
    assert run.code == 2
    assert "--host-before" in run.err
    run = peakline(
        "diff", multi, multi, "--json",
        "--host-before", "localhost_47507", "--host-after", "localhost:56665",
        "--session-before", "2026_11_20_17_33_46", "--session-after", "2026_11_20_17_33_46",
    )  # fmt: skip
    assert run.code == 0
    document = json.loads(run.out)
    assert document["before"]["path"].endswith("localhost_47507.xplane.pb")
    assert document["after"]["path"].endswith("localhost_56665.xplane.pb")


def test_of_very_many_allocators_the_first_that_changed_are_shown(peakline, two):
    same = [alloc(1, 8, allocator="same")]
    before, after = two(
        same, same + [alloc(n, 8, op="a", allocator=f"new {n:02}") for n in range(60)]
    )
    run = peakline("diff", before, after)
    assert run.code == 0
    assert [line for line in run.out.splitlines()[1:] if "new" in line] == [
        f"new {n:02} (only after)" for n in range(50)
    ]
    assert "\n\nand 11 more allocators (all with --json)\n" in run.out
    shown = peakline("diff", before, after, "--markdown")
    assert "and 11 more allocators" in shown.out
