"""The benchmark: what it measures, on which data, and what it says of it."""

import gzip
import json
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import combinations, pairwise

import pytest

import peakline
from peakline.schema import XSpace
from reference.grouping import group_events
from reference.memory_profile import memory_profile
from tests.conformance.compare import compare_memory_profiles


@pytest.fixture
def run(root, tmp_path, monkeypatch):
    """Run ``benchmarks/run.py`` with results of the test's own; gives the text of its page."""
    program = root / "benchmarks/run.py"
    monkeypatch.syspath_prepend(str(program.parent))

    def start(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", [str(program), "--results", str(tmp_path), *words])
        with pytest.raises(SystemExit, match=r"^0$"):
            runpy.run_path(str(program), run_name="__main__")
        return (tmp_path / "RESULTS.md").read_text()

    return start


@pytest.fixture
def keep(tmp_path):
    """Keep what a part measured, as its measurement would."""

    def write(part: str, measured: object, commit: str = "abc1234") -> None:
        record = {
            "part": part,
            "date": "2026-01-02",
            "command": "python some.py",
            "machine": {"Cores": "2"},
            "versions": {"peakline": "1.0"},
            "measured": measured,
            "commit": commit,
            "seconds": 61.6,
        }
        (tmp_path / f"{part}.json").write_text(json.dumps(record))

    return write


def _section(page: str, title: str) -> list[str]:
    return page.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0].splitlines()


def test_the_committed_page_is_what_the_committed_results_give(root, run, tmp_path):
    shutil.copytree(root / "benchmarks/results", tmp_path, dirs_exist_ok=True)
    assert run("--render") == (root / "benchmarks/RESULTS.md").read_text()


def test_every_part_that_can_be_measured_is_on_the_page(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from limits import LIMITS
    from parts import PARTS
    from sections import SECTIONS

    assert list(SECTIONS) == list(PARTS)
    assert {limit.part for limit in LIMITS} <= set(PARTS)


def test_a_part_that_was_not_measured_keeps_no_limit(run):
    section = _section(run("--render"), "Lifetimes")
    assert "Not measured yet." in section
    limit = "10 million activities matched in at most 2 s on one core"
    assert f"| {limit} | not measured |  |" in section


@pytest.mark.parametrize(("took", "kept"), [(1.99, "yes"), (2.01, "**no**")])
def test_a_limit_is_kept_or_not_by_the_measured_number(run, keep, took, kept):
    keep("lifetimes", {"seconds": [took, 0.1, 9.0], "activities": 10_000_000})
    page = run("--render")
    limit = "10 million activities matched in at most 2 s on one core"
    assert f"| {limit} | {kept} | {took} s |" in _section(page, "Lifetimes")


def test_a_comparison_divides_the_other_s_time_by_ours(run, keep):
    row = {"file": "40 MB", "bytes": 5, "command": "memory_profile", "runs": 1, "cpu_s": 1.0}
    row |= {"wall_least_s": 1.0, "wall_most_s": 1.0}
    rows = [
        row | {"program": "Peakline", "wall_s": 2.0, "peak_bytes": 10**6},
        row | {"program": "XProf", "wall_s": 8.0, "peak_bytes": 3 * 10**6},
    ]
    keep("files", {"rows": rows, "too_large": None})
    section = _section(run("--render"), "Files")
    assert "| 40 MB | memory_profile | XProf | 2.00 s | 8.00 s | 4.0 | 1 MB | 3 MB | 3.0 |" in (
        section
    )
    limit = "40 MB: `memory_profile` at least 5 times faster than XProf"
    assert f"| {limit} | **no** | 4.00 times |" in section


def test_a_load_says_what_was_refused_and_whether_memory_grew(run, keep):
    row = {
        "clients": 200, "seconds": 600.2, "answers": 10_000, "answers_per_s": 16.6, "refused": 120,
        "failed": 0, "median_s": 1.5, "p99_s": 3.25, "worst_s": 4.0,
        "memory_bytes": [5 * 10**8, 6 * 10**8], "threads": [20, 20],
    }  # fmt: skip
    rows = [row | {"program": "Peakline"}, row | {"program": "XProf", "refused": 0, "p99_s": 301}]
    keep("load", {"rows": rows})
    section = _section(run("--render"), "Load")
    figures = "1.20 % | 0.00 % | 1.50 s | 3.25 s | 4.00 s | 500 MB → 600 MB | 20 → 20 |"
    assert f"| Peakline | 10,000 in 600 s | 16.6 | {figures}" in section
    assert "| 200 clients: at most 1 % refused or failed | **no** | 1.20 % |" in section
    assert "| 200 clients: 99 % of the answers within 300 s | yes | 3.25 s |" in section
    growth = "200 clients: memory of the second half at most 1.1 times that of the first"
    assert f"| {growth} | **no** | 1.20 times |" in section


def test_first_runs_are_divided_by_later_ones(run, keep):
    row = {"runs": 5, "cpu_s": 0.5, "wall_least_s": 1.0, "wall_most_s": 1.0, "peak_bytes": 1}
    rows = [
        row | {"command": "memory, first run", "wall_s": 0.6},
        row | {"command": "memory, later run", "wall_s": 0.5},
        row | {"command": "python -c pass", "wall_s": 0.5},
        row | {"command": "peakline --version", "wall_s": 0.5, "cpu_s": 0.561},
    ]
    keep("install", {"megabytes": 350, "file": "1 MB (real)", "rows": rows})
    section = _section(run("--render"), "Installation")
    later = "at most 1.3 times as long as a later one"
    assert f"| 1 MB: the first `memory`, just installed, {later} | yes | 1.20 times |" in section
    assert "| the wheel and all it needs: at most 350 MB | yes | 350.00 MB |" in section
    (version,) = (line for line in section if line.startswith("| `peakline --version`: at most"))
    assert version.endswith("| **no** | 61.00 ms |")


@pytest.mark.parametrize(("slowest", "rounds"), [(30.0, 5), (30.1, 3)])
def test_a_slow_question_is_asked_three_times(root, monkeypatch, slowest, rounds):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from measure import Run, turns

    runs: list[Run] = []
    for _ in turns(5, [[], runs]):
        runs.append(Run(slowest, 1, 1, 0, timed_out=False, stdout=b"", stderr=""))  # noqa: PERF401 (read meanwhile)
    assert len(runs) == rounds


def test_growth_is_time_for_a_byte(run, keep):
    row = {"tool": "overview_page", "program": "Peakline", "runs": 1, "cpu_s": None}
    row |= {"wall_least_s": 1.0, "wall_most_s": 1.0, "peak_bytes": None}
    rows = [
        row | {"file": "386 MB", "bytes": 100, "wall_s": 2.0},
        row | {"file": "3 GiB", "bytes": 800, "wall_s": 12.0},
    ]
    keep("time", rows)
    section = _section(run("--render"), "Time")
    table = "| overview_page | 100 bytes | 800 bytes | 8.0 | 2.00 s | 12.00 s | 6.0 |"
    assert table in section
    limit = "overview_page: 3 GiB, per byte, at most 1.25 times as long as 386 MB"
    assert f"| {limit} | yes | 0.75 times |" in section


def test_a_section_says_when_and_of_what_it_was_measured(run, keep):
    keep("lifetimes", {"seconds": [1.0], "activities": 1})
    page = run("--render")
    text = " ".join(_section(page, "Lifetimes"))
    assert "Measured on 2026-01-02 at commit abc1234 by `python some.py`. Machine: Cores 2." in text
    assert "| [Lifetimes](#lifetimes) | 2026-01-02 | abc1234 | 62 s | 1 | 0 | 0 |" in page


def test_a_part_without_a_browser_is_left_out_and_its_numbers_stay(root, tmp_path, keep):
    keep("page", {"file": "f", "bytes": 1, "browser": "b", "rows": []}, commit="of-before")
    result = subprocess.run(
        [
            sys.executable,
            root / "benchmarks/run.py",
            *("--results", tmp_path, "--only", "page", "--peers", sys.executable),
        ],
        env={"PATH": ""}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert result.stdout.startswith("page: left out, ")
    assert "at commit of-before by" in (tmp_path / "RESULTS.md").read_text()


def test_a_measured_part_is_kept_and_the_others_stay(run, keep, tmp_path):
    keep("service", [], commit="of-before")
    page = run("--only", "lifetimes", "--repeats", "1")
    record = json.loads((tmp_path / "lifetimes.json").read_text())
    assert record["measured"]["activities"] == 10_000_000
    assert len(record["measured"]["seconds"]) == 1
    assert record["command"] == "python benchmarks/run.py --only lifetimes --repeats 1"
    assert "| 10,000,000 activities | Peakline | 1 |" in page
    assert "at commit of-before by" in page
    assert record["commit"] != "of-before"
    assert {"Load before", "Load after"} <= set(record["machine"])


class TestGuard:
    """What holds the verbs to their memory and instructions."""

    @pytest.fixture
    def guard(self, root, monkeypatch):
        monkeypatch.syspath_prepend(str(root / "benchmarks"))
        import guard

        return guard

    def test_a_rise_names_the_verb(self, guard):
        figures = {"steps": {"peak_bytes": 1000, "instructions": 100}, "ops": {"peak_bytes": 10}}
        now = {"steps": {"peak_bytes": 1050, "instructions": 105}, "ops": {"peak_bytes": 1}}
        assert guard.exceeded(now, figures) == []
        now["steps"] = {"peak_bytes": 1051, "instructions": 110}
        assert guard.exceeded(now, figures) == [
            "steps: peak_bytes 1,051, 5% above the 1,000 allowed",
            "steps: instructions 110, 10% above the 100 allowed",
        ]

    def test_a_verb_without_a_figure_fails(self, guard):
        assert guard.exceeded({"fit": {"peak_bytes": 1}}, {}) == [
            "fit: no figure of its peak memory; --record writes it"
        ]

    def test_instructions_are_what_perf_counts(self, guard, monkeypatch, tmp_path):
        perf = tmp_path / "perf"
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        for counted, expected in (("123456", 123456), ("<not supported>", None)):
            perf.write_text(f'#!/bin/sh\necho "{counted},,instructions:u,1,100.00,," > "$7"\n')
            perf.chmod(0o755)
            assert guard.instructions(["true"]) == expected
        perf.unlink()
        monkeypatch.setenv("PATH", str(tmp_path))
        assert guard.instructions(["true"]) is None

    def test_every_verb_has_a_figure(self, guard):
        figures = json.loads(guard.FIGURES.read_text("utf-8"))
        assert {*figures} == {*guard.VERBS}
        assert all(entry["peak_bytes"] > 0 for entry in figures.values())


_RUN_IDS = {"_p", "_c", "id", "element_id", "step_num"}
_MEMORY = {"MemoryAllocation": 1, "MemoryDeallocation": -1}


@pytest.fixture(scope="module")
def scaled(root, tmp_path_factory):
    """Make the file with that many repetitions, once; returns its bytes."""
    folder = tmp_path_factory.mktemp("scaled")

    @cache
    def make(repetitions: int, *options: str) -> bytes:
        path = folder / f"{repetitions}{'-'.join(options)}.xplane.pb"
        subprocess.run(
            [
                sys.executable,
                root / "benchmarks" / "scale.py",
                "--repetitions",
                str(repetitions),
                *options,
                path,
            ],
            env={"PATH": ""},
            check=True,
            capture_output=True,
        )
        return path.read_bytes()

    return make


@pytest.fixture(scope="module")
def source(sessions):
    path = sessions / "tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
    return gzip.decompress(path.read_bytes())


@pytest.fixture(scope="module")
def three(scaled):
    return XSpace.FromString(scaled(3))


def _events(space):
    """``(line, name, offset, {stat: value})`` of every event of the host's threads."""
    plane = space.planes[0]
    names = {key: each.name for key, each in plane.event_metadata.items()}
    stats = {key: each.name for key, each in plane.stat_metadata.items()}
    for number, line in enumerate(plane.lines):
        for event in line.events:
            values = {
                stats[stat.metadata_id]: getattr(stat, stat.WhichOneof("value"))
                for stat in event.stats
            }
            yield number, names[event.metadata_id], event.offset_ps, values


def test_one_repetition_is_the_source_byte_for_byte(scaled, source):
    assert scaled(1) == source


def test_every_event_is_repeated(three, source):
    once = Counter((line, name) for line, name, _, _ in _events(XSpace.FromString(source)))
    thrice = Counter((line, name) for line, name, _, _ in _events(three))
    extra = {key: count - 3 * once[key] for key, count in thrice.items() if count != 3 * once[key]}
    assert {name for _, name in extra} == set(_MEMORY)
    # Five buffers live at the end are freed and three of before are allocated again, twice.
    assert sum(extra.values()) == 2 * (5 + 3)


def test_bytes_are_as_a_serialiser_writes_them(three, scaled):
    assert three.ByteSize() == len(scaled(3))


def test_times_go_on(three):
    for line in three.planes[0].lines:
        offsets = [event.offset_ps for event in line.events]
        assert offsets == sorted(offsets)


def test_contexts_and_steps_are_distinct_in_every_repetition(three, source):
    def producers(space):
        return [(e["_pt"], e["_p"]) for *_, e in _events(space) if "_p" in e]

    def steps(space):
        return [e["step_num"] for *_, e in _events(space) if "step_num" in e]

    assert len(set(producers(three))) == len(producers(three))
    assert len(producers(three)) == 3 * len(producers(XSpace.FromString(source)))
    assert steps(three) == list(range(48))


def test_no_id_of_a_run_comes_again_in_another_repetition(three):
    steps = {e["step_num"]: offset for _, _, offset, e in _events(three) if "step_num" in e}
    period = steps[16] - steps[0]
    seen = [set(), set(), set()]
    for _, name, offset, values in _events(three):
        for stat in _RUN_IDS & values.keys():
            if not name.startswith("Iterator::") and values[stat]:
                seen[offset // period].add((stat, values[stat]))
    steps_of_one = {("step_num", step) for step in range(16)}
    assert not any(one & other for one, other in combinations(seen, 2))
    assert seen[0] >= steps_of_one - {("step_num", 0)}
    assert min(map(len, seen)) > 5000


def test_the_profile_has_no_other_ids(three):
    stats = {stat for *_, values in _events(three) for stat in values}
    likely = {stat for stat in stats if stat.endswith(("id", "_num")) or "flow" in stat}
    assert likely == _RUN_IDS - {"_p", "_c"} | {"parent_id", "iter_num"}


def test_repeated_ids_are_those_of_the_first_repetition(scaled, source):
    def ids(content):
        events = _events(XSpace.FromString(content))
        return {(stat, e[stat]) for *_, e in events for stat in _RUN_IDS & e.keys()}

    assert ids(scaled(2, "--repeated-ids")) == ids(source)
    assert scaled(1, "--repeated-ids") == source


@pytest.mark.nightly
def test_answers_about_repeated_ids_are_those_of_the_reference(scaled, tmp_path):
    content = scaled(2, "--repeated-ids")
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(content)
    space = XSpace.FromString(content)
    with peakline.open(str(path)) as profile:
        steps = {step["step_id"]: step["name"] for step in profile.columns("steps").to_pylist()}
        memory = profile.tool("memory_profile").content
    assert steps == group_events(space).names
    assert compare_memory_profiles(memory_profile(space), memory) == []


def test_producers_and_consumers_still_meet(three):
    produced = {(e["_pt"], e["_p"]) for *_, e in _events(three) if "_p" in e}
    assert produced == {(e["_ct"], e["_c"]) for *_, e in _events(three) if "_c" in e}


def test_the_allocator_s_account_is_consistent_across_the_seams(three):
    """Every record changes the bytes in use by exactly its own size."""
    events = [event[1:] for event in _events(three) if event[1] in _MEMORY]
    records = sorted(events, key=lambda record: record[1])
    live: set[int] = set()
    unmatched = 0
    for (_, _, before), (name, _, values) in pairwise(records):
        change = _MEMORY[name] * values["allocation_bytes"]
        assert values["bytes_allocated"] - before["bytes_allocated"] == change
    for name, _, values in records:
        if name == "MemoryAllocation":
            assert values["addr"] not in live
            live.add(values["addr"])
        elif values["addr"] in live:
            live.remove(values["addr"])
        else:
            unmatched += 1
    assert (unmatched, len(live)) == (3, 5)
