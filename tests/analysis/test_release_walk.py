"""The critical path's walk against the plain one, on small graphs that are worse than real ones."""

from random import Random

import pytest
from tests.profile.fake import FakeReader
from tests.reference.release_walk import PlainWalk

from peakline.errors import InputError
from peakline.graph import recorded, releases
from peakline.graph.critical_path import critical_path, step_runs
from peakline.graph.releases import Releases
from peakline.graph.step_graph import StepGraph
from peakline.tables import Profile

DEVICES = ("/job:a/device:CPU:0", "/job:b/device:CPU:0")
STREAM = "/device:GPU:0/stream:1"


def random_profile(random):
    """Up to twelve nodes on two devices: cycles, transfers, and many runs at the same times."""
    kind = random.choice(["partition", "partition", "graph_def"])
    names = [f"n{at}" for at in range(random.randint(1, 12))]
    device_of = {name: random.choice(DEVICES) for name in names}
    forward = random.random() < 0.6
    edges = []
    for _ in range(random.randint(0, 3 * len(names))):
        source, target = random.choice(names), random.choice(names)
        if forward and names.index(source) > names.index(target):
            source, target = target, source
        edges.append((source, target, random.random() < 0.3))
    tensors = {}
    for _ in range(random.randint(0, 4)):
        tensors[random.choice(names)] = (random.choice(["_Send", "_Recv"]), random.choice("xy"))
    ran = [name for name in names if name not in tensors and random.random() < 0.6] or names[:1]
    span = random.choice([3, 20, 200])
    rows = [_run(random, random.choice(ran), span, device_of) for _ in range(random.randint(1, 30))]
    graph_of = {DEVICES[0]: "run 0 a", DEVICES[1]: "run 0 b"}
    unknown = set(random.sample(names, 1)) if random.random() < 0.3 else set()
    wanted = ("tensor_name", "send_device", "recv_device")
    nodes = [name for name in names if name not in unknown]
    return Profile(
        FakeReader(
            {
                "op_runs": [{"op_run_id": at, **row} for at, row in enumerate(rows)],
                "steps": [{"step_id": 0, "name": "run 0"}],
                "graphs": [{"graph": graph, "kind": kind} for graph in graph_of.values()],
                "nodes": [
                    {
                        "graph": graph_of[device_of[name]],
                        "name": name,
                        "device": device_of[name],
                        "op": tensors.get(name, ("Op", ""))[0],
                    }
                    for name in nodes
                ],
                "edges": [
                    {
                        "graph": graph_of[device_of[target]],
                        "source": source,
                        "target": target,
                        "is_control": control,
                    }
                    for source, target, control in edges
                    if not {source, target} & unknown
                ],
                "node_attrs": [
                    {"graph": graph_of[device_of[name]], "name": name, "attr": key, "value": value}
                    for name, (_, tensor) in tensors.items()
                    if name not in unknown
                    for key, value in zip(wanted, (tensor, *DEVICES), strict=True)
                ],
            }
        )
    )


def _run(random, name, span, device_of):
    kind = random.choice(["executor"] * 8 + ["rpc", "stream"])
    start, took = random.randint(0, span), random.randint(0, span // 2)
    row = {
        "name": name,
        "device": device_of[name],
        "start_ps": start,
        "duration_ps": took,
        "scheduled_ps": random.choice([None, start, random.randint(0, start)]),
        "compute_start_ps": random.choice([None, start, random.randint(0, span)]),
        "compute_ps": random.randint(0, took),
        "kind": kind,
        "step_id": 0,
        "label": f"{name} = Op(n1, n0:1, ^n2)" if random.random() < 0.5 else None,
    }
    if kind == "stream":
        return {**row, "name": f"{name}:Op", "device": STREAM}
    if kind == "rpc":
        device, label = random.choice(DEVICES), f"{random.choice('xy')} from /a to /b"
        return {**row, "name": "RecvTensor", "device": device, "label": label}
    return row


@pytest.mark.parametrize("many", [1, 16])
def test_it_is_that_of_the_plain_one(monkeypatch, many):
    monkeypatch.setattr(releases, "_MANY", many)
    lengths = set()
    for seed in range(500):
        profile = random_profile(Random(seed))
        runs = step_runs(profile).runs
        found = Releases(runs, StepGraph(profile, "run 0"))
        chain = found.chain()
        assert chain == PlainWalk(runs, StepGraph(profile, "run 0"), found).chain(), seed
        lengths.add(len(chain))
    assert max(lengths) > 10


def test_it_ends_where_it_would_take_too_long(monkeypatch):
    run = {
        "device": DEVICES[0], "kind": "executor", "label": "a = Op(a)", "step_id": 0, "name": "a",
    }  # fmt: skip
    profile = Profile(FakeReader({"op_runs": [{**run, "start_ps": at} for at in range(9)]}))
    assert len(critical_path(profile, step_runs(profile)).pieces) == 9
    monkeypatch.setattr(recorded, "_FREE_STEPS", -200)
    with pytest.raises(InputError, match="no critical path of this step is looked for"):
        critical_path(profile, step_runs(profile))
