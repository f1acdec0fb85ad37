"""The view ``steps`` of the ``timeline`` tool against the rows of the table ``step_breakdown``."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.timing.gpu_jobs import Job, Work, write
from tests.analysis.timing.timelines import profile_of
from tests.web.samples import many_steps_profile

import peakline

DATA = Path(__file__).parent.parent / "data"
SAMPLES = (
    "programs/time/slow_step.xplane.pb.gz",
    "programs/steps/tf_train_eval.xplane.pb.gz",
    "programs/steps/torch_train_eval.pt.trace.json.gz",
    "run_metadata/tf1_grpc.pb.gz",
)


def ask(profile, **parameters):
    """The answer; the binary one has the same columns."""
    found = json.loads(profile.tool("timeline", view="steps", **parameters).content)
    binary = peakline.read_timeline(
        profile.tool("timeline", format="bin", view="steps", **parameters).content
    )
    assert set(binary.columns) == set(found) - {"view"}
    assert np.array_equal(binary["begin_ps"], found["begin_ps"])
    return found


def rows_of(profile):
    """All steps, by device and begin."""
    return profile.sql(
        "select step_id, name, device, start_ps, end_ps, wall_ps, is_cut_off from step_breakdown"
    ).to_pylist()


def items_of(found):
    """The items as objects, times from the profile's zero."""
    keys = ("device", "place", "begin_ps", "duration_ps", "longest_ps", "count", "step_id",
            "step_name", "is_cut_off")  # fmt: skip
    rows = [dict(zip(keys, row, strict=True)) for row in zip(*map(found.get, keys), strict=True)]
    return [row | {"begin_ps": row["begin_ps"] + found["start_ps"]} for row in rows]


def expected_items(rows, found):
    """The same, step by step."""
    made = []
    start, end, cell = found["start_ps"], found["end_ps"], found["resolution_ps"]
    for number, device in enumerate(found["device_name"]):
        own = sorted((row for row in rows if row["device"] == device), key=_begin)
        last = None
        for place, row in enumerate(own):
            if row["start_ps"] >= end or not (row["end_ps"] > start or row["start_ps"] >= start):
                continue
            is_short = cell > 0 and row["wall_ps"] < cell
            where = row["start_ps"] // cell if is_short else None
            if is_short and last is not None and last == where:
                item = made[-1]
                until = max(item["begin_ps"] + item["duration_ps"], row["end_ps"])
                item["duration_ps"] = until - item["begin_ps"]
                item["count"] += 1
                if row["wall_ps"] > item["longest_ps"]:
                    item |= _named(row)
            else:
                made.append(
                    {"device": number, "place": place, "begin_ps": row["start_ps"],
                     "duration_ps": row["wall_ps"], "count": 1} | _named(row)
                )  # fmt: skip
            last = where
    return made


def _begin(row):
    return row["start_ps"]


def _named(row):
    return {
        "longest_ps": row["wall_ps"],
        "step_id": row["step_id"],
        "step_name": row["name"] or "",
        "is_cut_off": int(row["is_cut_off"]),
    }


@pytest.mark.parametrize("width", [3, 50, 1000])
@pytest.mark.parametrize("name", [*SAMPLES, "many steps", "devices"])
def test_the_items_are_the_steps(name, width, tmp_path):
    profile = _open(name, tmp_path)
    rows = rows_of(profile)
    assert rows
    found = ask(profile, width=width)
    assert found["total"] == len(rows) == sum(found["device_steps"])
    assert items_of(found) == expected_items(rows, found)
    assert sum(found["count"]) == len(rows)
    whole = found["end_ps"] - found["start_ps"]
    part = {"start_ps": found["start_ps"] + whole // 3, "end_ps": found["end_ps"] - whole // 3}
    zoomed = ask(profile, width=width, **part)
    assert items_of(zoomed) == expected_items(rows, zoomed)


def test_an_answer_is_bounded_by_pixels(tmp_path):
    found = ask(_open("many steps", tmp_path), width=100)
    assert found["total"] == 6400
    assert len(found["step_id"]) <= 400
    assert len(json.dumps(found)) < 60_000


@pytest.mark.parametrize("name", [*SAMPLES, "devices"])
def test_a_step_is_found_with_its_neighbours(name, tmp_path):
    profile = _open(name, tmp_path)
    rows = rows_of(profile)
    devices = ask(profile, width=1)["device_name"]
    for device in devices:
        own = sorted((row for row in rows if row["device"] == device), key=_begin)
        for place, row in list(enumerate(own))[:: max(1, len(own) // 7)]:
            query = {} if device is None else {"device": device}
            found = ask(profile, width=1, step=str(row["step_id"]), **query)["found"]
            before = own[place - 1]["step_id"] if place else None
            after = own[place + 1]["step_id"] if place + 1 < len(own) else None
            assert {key: found[key] for key in row} == row
            assert (found["previous"] or {}).get("step_id") == before
            assert (found["next"] or {}).get("step_id") == after
            at = ask(profile, width=1, at_ps=row["end_ps"] - 1, **query)["found"]
            assert at["step_id"] == row["step_id"]
    by_name = ask(profile, width=1, step=rows[-1]["name"])["found"]
    same = [row for row in rows if row["name"] == rows[-1]["name"]]
    assert by_name["start_ps"] == min(map(_begin, same))
    assert ask(profile, width=1, step="no such step")["found"] is None


def test_a_profile_without_steps_has_none():
    found = ask(profile_of([("work", 0, 100)]), width=10)
    assert (found["total"], found["device_name"], found["found"]) == (0, [], None)


def _open(name, tmp_path):
    if name == "many steps":
        content = many_steps_profile()
    elif name == "devices":
        content = write(
            Job(lambda _step, _device: [Work("gemm", 100, 5000, launched=50)], devices=3)
        )
    else:
        return peakline.open(DATA / name)
    place = tmp_path / "host.xplane.pb"
    place.write_bytes(content)
    return peakline.open(place)
