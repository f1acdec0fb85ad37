"""Which compiled program requested a buffer: by events of the same thread, and by nothing else."""

import json

import pytest

import peakline
from reference.case import allocate
from reference.xspace_builder import SpaceBuilder

EXECUTE = "PjRtStreamExecutorLoadedExecutable::Execute"


def opened(tmp_path, fill):
    built = SpaceBuilder()
    fill(built)
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(built.space.SerializeToString())
    return peakline.open(path)


def stacked(profile):
    answer = json.loads(profile.tool("memory_stack", group="program", width=5).content)
    layers = {(one["kind"], one["key"]): one["top_bytes"] for one in answer["layers"]}
    return layers, answer["program_events"]


def plain(profile):
    """The programs of the records in order, by looking at every pair of events."""
    events = profile.columns("events").to_pylist()
    stats = {}
    for row in profile.columns("event_stats").to_pylist():
        stats.setdefault(row["event_id"], {})[row["name"]] = row["value"]

    def inside(one, time, line):
        return (
            one["line_id"] == line
            and one["start_ps"] <= time <= one["start_ps"] + one["duration_ps"]
        )

    found = []
    for record in profile.columns("allocator_events").to_pylist():
        if record["activity"] != "allocation":
            continue
        names = set()
        for run in events:
            is_run = "Executable::Execute" in run["name"] or "::Enqueue" in run["name"]
            if not is_run or not inside(run, record["time_ps"], record["line_id"]):
                continue
            end = run["start_ps"] + run["duration_ps"]
            within = {
                stats.get(one["event_id"], {}).get("module_name")
                or stats.get(one["event_id"], {}).get("hlo_module")
                for one in events
                if one["line_id"] == run["line_id"] and run["start_ps"] <= one["start_ps"] < end
            } - {None}
            if len(within) == 1:
                names |= within
        found.append(names)
    return found


def run(line, start, name=None, *, execute=EXECUTE, key="module_name"):
    line.event(execute, start, 1000)
    line.event("PjRtStreamExecutorLoadedExecutable::EnqueueExecution", start + 10, 900)
    if name:
        line.event("GpuExecutable::ExecuteThunks", start + 500, 300, {key: name})


def test_what_lies_in_a_run_on_its_thread_is_of_its_program(tmp_path):
    def fill(space):
        line = space.host().line("a")
        run(line, 1000, "jit_one")
        run(line, 3000, "jit_two", key="hlo_module")
        allocate(line, 1100, 1, 64, in_use=64)
        allocate(line, 3100, 2, 128, in_use=224)
        allocate(line, 2500, 3, 32, in_use=96)  # between runs

    with opened(tmp_path, fill) as profile:
        layers, events = stacked(profile)
        assert layers == {("group", "jit_one"): 64, ("group", "jit_two"): 128, ("group", ""): 32}
        assert events == [EXECUTE]
        assert plain(profile) == [{"jit_one"}, set(), {"jit_two"}]


def test_another_thread_at_the_same_time_says_nothing(tmp_path):
    def fill(space):
        host = space.host()
        allocate(host.line("a"), 1100, 1, 64)
        run(host.line("b"), 1000, "jit_one")

    with opened(tmp_path, fill) as profile:
        assert plain(profile) == [set()]
        layers, events = stacked(profile)
        assert events is None
        assert ("group", "jit_one") not in layers


@pytest.mark.parametrize("name", [None, "jit_two"])
def test_a_run_that_names_none_or_several_says_nothing(tmp_path, name):
    def fill(space):
        line = space.host().line("a")
        run(line, 1000, name)
        if name:
            line.event("ThunkExecutor", 1050, 20, {"module_name": "jit_other"})
        line.event("train_loop", 0, 9000, {"module_name": "jit_far"})
        allocate(line, 1100, 1, 64)

    with opened(tmp_path, fill) as profile:
        # What names both lies in the outer runs; the inner ones name none before the record.
        layers, events = stacked(profile)
        assert (events is None) == (not any(plain(profile)))
        assert ("group", "jit_far") not in layers


def test_programs_have_their_number_where_the_profile_holds_them(sessions):
    """A recording of programs on a CPU has no records of memory: nothing is claimed."""
    with peakline.open(sessions / "jax_cpu") as profile:
        answer = json.loads(profile.tool("memory_stack", group="program").content)
        assert answer["program_events"] is None
