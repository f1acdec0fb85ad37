"""inference_profile: requests, batches and devices, and what ours says otherwise than XProf."""

import json

import pytest
from tests.each_row import each_row

import peakline
from peakline.errors import UsageError
from peakline.tools import find_tool, run_tool
from peakline.xprof.inference_profile.spans import Part, Span, spent_within, xprof_spent
from peakline.xprof.inference_profile.tables import sampled
from reference.serving_spaces import STYLES, US, RandomServer
from reference.xspace_builder import SpaceBuilder

TOOL = "inference_profile"
PARTS = (
    "host_preprocessing", "host_runtime", "device_compute", "data_transfer_h2d",
    "data_transfer_d2h", "host_postprocess", "idle time",
)  # fmt: skip


def written(tmp_path, space, name="host"):
    path = tmp_path / f"{name}.xplane.pb"
    path.write_bytes(space.SerializeToString())
    return path


def tables(path, **parameters):
    """The answer: per table its rows, each by the ids of the columns; and the properties."""
    with peakline.open(str(path)) as profile:
        content = run_tool(profile, TOOL, parameters).content
    result = []
    for table in json.loads(content):
        ids = [column["id"] for column in table["cols"]]
        rows = [dict(zip(ids, (c["v"] for c in row["c"]), strict=True)) for row in table["rows"]]
        result.append((rows, table.get("p", {})))
    return result


def gpu_server():
    """One request that works on a GPU for 40 of its 100 µs, in two kernels that overlap."""
    builder = SpaceBuilder()
    line = builder.host().line("thread", 5)
    line.event("TfrtModelRun", US, 100 * US, {"_r": 1, "model_id": "m"})
    stream = builder.plane("/device:GPU:0").line("Stream #1", 5)
    for number, (begin, length) in enumerate([(20, 30), (40, 20)]):
        line.event("cuLaunchKernel", (5 + number) * US, US, {"correlation_id": number + 1})
        stream.event("kernel", begin * US, length * US, {"correlation_id": number + 1})
    return builder.space


def test_work_of_gpus_counts(tmp_path):
    path = written(tmp_path, gpu_server())
    (models, properties), (requests, _) = tables(path)
    assert [model["model_name"] for model in models] == ["m"]
    assert properties == {"hasBatching": "false", "hasTensorPattern": "false"}
    first, average = requests
    assert (first["latency_ms"], first["device_compute"]) == (0.1, 0.04)
    # From the end of the device's work on.
    assert first["host_postprocess"] == pytest.approx(0.041)
    assert first["idle time"] == pytest.approx(0.1 - 0.04 - 0.041)
    assert average["percentile"] == "Average"
    (requests, _) = tables(path, compatible="xprof")[1]
    assert requests[0]["device_compute"] == 0


def test_requests_without_a_model_are_shown(tmp_path):
    builder = SpaceBuilder()
    line = builder.host().line("thread", 5)
    for number, model in enumerate(["m", None, "n", None]):
        stats = {"_r": 1} | ({"model_id": model} if model else {})
        line.event("TfrtModelRun", (1 + 100 * number) * US, (50 + number) * US, stats)
    path = written(tmp_path, builder.space)
    models, *answers = tables(path)
    assert [model["model_name"] for model in models[0]] == ["m", "n", "unattributed"]
    assert [len(rows) - 1 for rows, _ in answers] == [1, 1, 2]
    models, *answers = tables(path, compatible="xprof")
    assert [model["model_name"] for model in models[0]] == ["m", "n"]
    assert [len(rows) - 1 for rows, _ in answers] == [1, 1]


@pytest.mark.parametrize("style", STYLES)
def test_every_request_is_there_once(tmp_path, style):
    space = RandomServer(3, style, requests=40, batching=True).space
    events = [event for line in space.planes[0].lines for event in line.events]
    names = {number: entry.name for number, entry in space.planes[0].event_metadata.items()}
    batches = sum("ProcessBatch" in names[event.metadata_id] for event in events)
    models, *answers = tables(written(tmp_path, space))
    per_model = 2 + (models[1]["hasTensorPattern"] == "true")
    requests = [row for rows, _ in answers[::per_model] for row in rows]
    shown = [row["request_id"] for row in requests if row["request_id"] != "N/A"]
    assert len(set(shown)) == len(shown) == 40
    result = [row for rows, _ in answers[1::per_model] for row in rows if row["batch_id"] != "N/A"]
    assert len(result) == batches
    for row in requests:
        assert sum(row[part] for part in PARTS) <= row["latency_ms"] * (1 + 1e-9)


@each_row(("count", "shown"), [(0, 0), (1, 1), (60, 60), (61, 3), (1000, 36), (100_000, 55)])
def test_how_many_are_shown(count, shown):
    result = sampled(list(range(count)), lambda item: item)
    assert len(result) == shown
    assert [item for item, _ in result] == sorted(item for item, _ in result)
    assert all(percentile == 100 * item / count for item, percentile in result)


def test_what_time_goes_to():
    spans = [
        Span(Part.HOST_PREPROCESS, 0, 50),
        Span(Part.DEVICE_COMPUTE, 20, 30),
        Span(Part.HOST_POSTPROCESS, 60, 90),
    ]
    apart = {Part.HOST_PREPROCESS: 40, Part.DEVICE_COMPUTE: 10, Part.HOST_POSTPROCESS: 30}
    assert xprof_spent(spans) == {**apart, Part.IDLE: 10}
    # Also before the first and after the last.
    assert spent_within(spans, 0, 100) == {**apart, Part.IDLE: 20}
    assert spent_within(spans, 25, 70) == {
        Part.HOST_PREPROCESS: 20, Part.DEVICE_COMPUTE: 5, Part.HOST_POSTPROCESS: 10, Part.IDLE: 10,
    }  # fmt: skip
    assert spent_within([], 0, 7) == {Part.IDLE: 7}
    assert spent_within([Span(Part.HOST_RUNTIME, 9, 3)], 0, 7) == {Part.IDLE: 7}


def test_links_of_steps(tmp_path):
    """Two requests lead to one batch, one request to two."""
    builder = SpaceBuilder()
    host = builder.host()
    front, back = host.line("front", 5), host.line("back", 5)
    for number, contexts in enumerate([[1], [1], [2, 3]]):
        front.event("BatchingSessionRun", (1 + 100 * number) * US, 90 * US)
        for place, context in enumerate(contexts):
            at = (10 + 100 * number + 10 * place) * US
            front.event("Schedule", at, US, {"_pt": 9, "_p": context})
    for context in (1, 2, 3):
        back.event("ProcessBatch", (400 + 100 * context) * US, 50 * US, {"_ct": 9, "_c": context})
    with peakline.open(str(written(tmp_path, builder.space))) as profile:
        names = {row["step_id"]: row["name"] for row in profile.table("steps").to_pylist()}
        links, left_out = profile.step_links()
    assert left_out == 0
    assert [[names[step] for step in pair] for pair in links.tolist()] == [
        ["BatchingSessionRun 3", "ProcessBatch 0"],
        ["BatchingSessionRun 4", "ProcessBatch 0"],
        ["BatchingSessionRun 5", "ProcessBatch 1"],
        ["BatchingSessionRun 5", "ProcessBatch 2"],
    ]


def test_crowds_make_no_links(tmp_path, monkeypatch):
    monkeypatch.setattr("peakline.formats.xplane.grouping.MOST_LINKS", 3)
    path = written(tmp_path, RandomServer(1, "root", requests=40, batching=True).space)
    with peakline.open(str(path)) as profile:
        profile.tool(TOOL)
        (warning,) = profile.warnings
        assert warning.kind == "links_left_out"
        assert warning.count > 3


def test_what_serves_nothing(tmp_path):
    builder = SpaceBuilder()
    builder.host().line("thread", 5).event("work", US, US)
    path = written(tmp_path, builder.space)
    (models, _), (requests, properties) = tables(path)
    assert [row["model_name"] for row in models] == ["ALL"]
    assert [row["percentile"] for row in requests] == ["Average"]
    assert properties == {"averageLatencyMs": "0.000", "throughput": "0.0"}
    with peakline.open(str(path)) as profile:
        assert not find_tool(TOOL).supports(profile)
    with peakline.open(str(written(tmp_path, gpu_server(), "server"))) as profile:
        assert find_tool(TOOL).supports(profile)
        assert run_tool(profile, TOOL, format="csv").content == b'"Model Name"\n"m"\n'
        with pytest.raises(UsageError, match="request_column"):
            run_tool(profile, TOOL, {"request_column": "Weight"})
