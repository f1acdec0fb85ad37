"""What the worst files known take, whatever is asked about them: a bounded share, and no more than
2.3 times as much for twice the bytes.
"""

import pytest
from tests.amplification import pairs
from tests.amplification.matrix import Measuring, cases, measured
from tests.amplification.questions import FILE, OUT, broad, questions

import peakline
from peakline.__main__ import main as peakline_command
from peakline.errors import InputError
from peakline.findings.memory_answer import answer_memory
from peakline.tools import find_tool

LIMITS = {10_000: (200_000_000, 2.0), 100_000: (300_000_000, 5.0), 1_000_000: (900_000_000, 20.0)}
"""By the size of a file: bytes beyond those of the imports (100 MB), and seconds of CPU."""
HALF, WHOLE = 500_000, 1_000_000
MOST_TIMES, NOISE_BYTES, NOISE_S = 2.3, 20_000_000, 0.3
"""What twice the bytes may take of what these take, beyond what differs from run to run."""
MOST_A_BYTE = 4
"""What a packed file may take beyond a plain one, for each byte that it unpacks to."""
FAILED = {
    "graph_def.deep_scope": ["tool op_stats", "graph"],
    "graph_def.doubling_functions": ["tool op_stats"],
    "xplane.empty_planes": ["summary", "tool overview_page"],
    "xplane.deep_scopes": ["tool trace_viewer FILE", "tool trace_viewer@ FILE"],
    "xplane.one_memory_scope": ["tool memory_profile FILE"],
    "xplane.core_number": ["summary", "tool perf_counters", "tool trace_viewer FILE"],
    "xplane.program_number": ["tool graph FILE"],
    "xplane.program_on_many_devices": ["memory"],
    "xplane.chip_number": ["tool perf_counters"],
    "xplane.shape_number": ["memory", "export --to run-metadata"],
    "torch_snapshot.traces_of_one": ["summary"],
    "torch_snapshot.one_oom": ["summary"],
    "chrome_trace.long_name_of_threads": ["steps"],
    "hlo_proto.odd_algorithm": ["tool graph_viewer"],
    "hlo_proto.odd_knobs": ["tool graph_viewer"],
    "hlo_proto.odd_scale": ["tool graph_viewer"],
    "hlo_printing.operands_of_long_name": ["tool graph_viewer"],
    "hlo_printing.calls_of_long_name": ["tool graph_viewer", "memory"],
    "hlo_printing.sharding_of_parts": ["tool graph_viewer"],
    "hlo_printing.long_axis": ["tool graph_viewer"],
    "hlo_printing.product_of_devices": ["tool graph_viewer"],
    "hlo_printing.gaps_of_origins": ["tool graph_viewer"],
    "hlo_printing.shared_payload": ["tool graph_viewer"],
    "hlo_printing.shared_scoped_memory": ["tool memory_viewer"],
    "hlo_printing.asynchronous_chain": ["tool graph_viewer"],
    "pprof.texts": ["memory"],
    "hlo_assignment.values_of_a_row": ["programs"],
    "hlo_text.shape_of_wrapped": ["memory", "export"],
    "memory_log.untracked": ["summary"],
    "saved_model.long_tags": ["graph FILE", "graph --check FILE"],
    "tfevents.partitions": ["export --to run-metadata"],
    "run_metadata.kernels": ["tool op_profile"],
    "run_metadata.partitions": ["tool graph FILE", "graph --check"],
    "run_metadata.allocators": ["tool memory_profile"],
    "hlo_proto.doubling_calls": ["programs"],
    "hlo_work.convolutions": ["programs"],
    "hlo_work.convolution_windows": ["tool graph FILE"],
    "hlo_work.users_of_wide_tuple": ["programs"],
    "hlo_work.calls_of_wide": ["programs"],
    "hlo_work.donated_chain": ["diff FILE"],
    "hlo_work.donated_bitcasts": ["memory"],
    "hlo_work.deep_product": ["programs"],
    "hlo_work.deep_convolution": ["tool graph_viewer"],
    "graph_check.unknown_inputs_of_long_function": ["graph --check"],
    "graph_check.no_op_of_long_function": ["graph --check --json"],
    "graph_def.shape_of_every_input": ["tool op_stats"],
    "graph_def.named_chain": ["tool graph FILE -p depth"],
    "critical_path.never_recorded_inputs": ["tool graph FILE", "tool critical_path"],
    "critical_path.never_recorded": ["tool critical_path"],
}
"""Some that took more than their share or ended with an error of ours, and questions that showed
it.
"""


def beyond(took):
    """Whether it is too much; who compares files has the time of each.

    A query has a limit of memory of its own, most of the machine's unless it is given: where it
    was refused for that it took what it may.
    """
    most, seconds = LIMITS[took.size]
    if took.question.startswith("sql") and "takes more memory" in took.said:
        return took.seconds > seconds
    files = took.question.count(FILE)
    return took.bytes > most or took.seconds > seconds * files or took.code not in range(4)


FIRST = {case.partition(".")[0]: case for case in reversed(FAILED)}
"""Of each family of cases one is in every test run, with the first question that begins so."""


@pytest.mark.parametrize(
    ("cases", "most"),
    [
        pytest.param([*FIRST.values()], 1, id="one of each family"),
        pytest.param([*FAILED], None, id="all", marks=pytest.mark.nightly),
    ],
)
def test_some_of_the_worst_files_take_their_share(cases, most):
    with Measuring() as measuring:
        for case in cases:
            request = []
            for start in FAILED[case]:
                request += [one for one in questions() if " ".join(one).startswith(start)][:most]
            assert [
                took for took in measured(measuring, [case], 100_000, request) if beyond(took)
            ] == []


@pytest.mark.parametrize(
    "made",
    [
        pytest.param([pairs.kinds], marks=pytest.mark.nightly),
        pytest.param([pairs.shapes, pairs.allocators, pairs.failures], marks=pytest.mark.nightly),
    ],
)
def test_two_different_files_take_their_share(tmp_path, made):
    request = [["--version"]]
    for pair in made:
        paths = [tmp_path / f"{pair.__name__} {side}" for side in (0, 1)]
        for side, path in enumerate(paths):
            path.write_bytes(pair(100_000, side))
        one, other = map(str, paths)
        if pair is pairs.failures:
            request += [["memory", one, "--programs", other, *more] for more in ([], ["--json"])]
        else:
            request.append(["diff", one, other])
    with Measuring() as measuring:
        base, *result = measuring.measured(request)
    most, seconds = LIMITS[100_000]
    for took in result:
        assert took["code"] == 0
        assert took["peak_bytes"] - base["peak_bytes"] < most
        assert took["seconds"] < 2 * seconds


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("trace_viewer", {}),
        ("trace_viewer", {"compatible": "xprof"}),
        ("trace_viewer@", {}),
        ("trace_viewer@", {"search_prefix": "a", "search_metadata": "true"}),
        ("critical_path", {}),
    ],
)
def test_a_long_text_is_not_written_for_every_event(tmp_path, tool, parameters):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(cases()["xplane.deep_scopes"](400_000))
    chosen = find_tool(tool)
    with peakline.open(str(path)) as profile, pytest.raises(InputError, match="very long texts"):
        chosen.answer(profile, chosen.validated(parameters), "json")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("xplane.deep_scopes", ["trace", FILE, "--json", "--limit", "100000"]),
        ("xplane.deep_scopes", ["export", FILE, "--to", "run-metadata", "-o", OUT]),
        ("torch_snapshot.long_name", ["export", FILE, "--to", "speedscope", "-o", OUT]),
    ],
)
def test_nor_in_what_commands_write(tmp_path, capsys, case, words):
    path = tmp_path / "worst"
    path.write_bytes(cases()[case](400_000))
    places = {FILE: str(path), OUT: str(tmp_path / "out")}
    assert peakline_command([places.get(word, word) for word in words]) == 3
    assert "very long texts" in capsys.readouterr().err


def test_of_a_long_name_in_many_frames_the_begin_is_shown(tmp_path):
    path = tmp_path / "worst"
    path.write_bytes(cases()["torch_snapshot.long_name"](400_000))
    with peakline.open(str(path)) as profile:
        buffers = answer_memory(profile).allocators[0].peak_buffers
    assert {buffer.function[:1002].strip("x") for buffer in buffers} == {" ("}


@pytest.mark.soak
@pytest.mark.parametrize("case", cases())
def test_every_one_takes_its_share(case):
    with Measuring() as measuring:
        for size in LIMITS:
            result = measured(measuring, [case], size, list(questions()))
            assert [took for took in result if beyond(took)] == []


@pytest.mark.soak
@pytest.mark.parametrize("case", cases())
def test_twice_the_bytes_take_no_more_than_they_have_to(case):
    with Measuring() as measuring:
        half = measured(measuring, [case], HALF, list(broad()))
        pairs = list(zip(half, measured(measuring, [case], WHOLE, list(broad())), strict=True))
    assert [pair for pair in pairs if _grows(*pair)] == []


def _grows(half, whole):
    return (
        whole.bytes > MOST_TIMES * half.bytes + NOISE_BYTES
        or whole.seconds > MOST_TIMES * half.seconds + NOISE_S
    )


@pytest.mark.soak
@pytest.mark.parametrize("case", cases())
def test_packed_ones_take_their_share(case):
    with Measuring() as measuring:
        plain = measured(measuring, [case], WHOLE, list(broad()))
        packed = measured(measuring, [case], WHOLE, list(broad()), packed=True)
        pairs = list(zip(plain, packed, strict=True))
    more = MOST_A_BYTE * WHOLE + NOISE_BYTES
    assert [pair for pair in pairs if pair[1].bytes > pair[0].bytes + more] == []
