"""The critical path of a graph, and its walk against a plain one on graphs worse than real ones."""

from random import Random

import pytest
from tests.reference.release_walk import PlainWalk
from tests.tables.fake import FakeReader

import peakline
from peakline.errors import InputError, NotFoundError
from peakline.graph import releases
from peakline.graph.critical_path import critical_path, step_runs
from peakline.graph.releases import Releases
from peakline.graph.step_graph import StepGraph
from peakline.tables import Profile

CPU, OTHER = "/job:a/device:CPU:0", "/job:b/device:CPU:0"


def run(name, start, end, *, ready=None, done=None, device=CPU, kind="executor", **more):
    """An execution from ``start`` to ``end`` that was ``ready`` and ``done`` computing when."""
    return {
        "device": device,
        "name": name,
        "op_type": name.title(),
        "start_ps": start,
        "duration_ps": end - start,
        "scheduled_ps": start if ready is None else ready,
        "compute_start_ps": start,
        "compute_ps": (end if done is None else done) - start,
        "kind": kind,
        "step_id": 0,
        **more,
    }


def profile_of(runs, edges=(), *, kind="partition", devices=None, attrs=()):
    """Executions, and a graph of the nodes that ``edges`` name (``(source, target)``)."""
    devices = devices or {}
    graphs = {device: f"partition {at}" for at, device in enumerate([CPU, OTHER])}
    names = dict.fromkeys(name.removeprefix("^") for edge in edges for name in edge)
    graph_of = {name: graphs[devices.get(name, CPU)] for name in names}
    sends = {name for name, _, _ in attrs}
    return Profile(
        FakeReader(
            {
                "op_runs": [{"op_run_id": at, **row} for at, row in enumerate(runs)],
                "steps": [{"step_id": 0, "name": "run 0"}],
                "graphs": [{"graph": graph, "kind": kind} for graph in graphs.values()],
                "nodes": [
                    {
                        "graph": graph_of[name],
                        "name": name,
                        "device": devices.get(name, CPU),
                        "op": {True: name.rstrip("0123456789")}.get(name in sends, "Op"),
                    }
                    for name in names
                ],
                "edges": [
                    {
                        "graph": graph_of[target],
                        "source": source.removeprefix("^"),
                        "target": target,
                        "is_control": source.startswith("^"),
                    }
                    for source, target in edges
                    if target
                ],
                "node_attrs": [
                    {"graph": graph_of[name], "name": name, "attr": attr, "value": value}
                    for name, attr, value in attrs
                ],
            }
        )
    )


def path_of(profile, step=None):
    """Name, why, begin, waited, queued and busy of every piece."""
    path = critical_path(profile, step_runs(profile, step))
    assert path.busy_ps + path.wait_ps == path.end_ps - path.start_ps
    return [(p.name, p.why, p.begin_ps, p.wait_ps, p.queued_ps, p.busy_ps) for p in path.pieces]


def test_a_chain():
    profile = profile_of(
        [run("a", 0, 10), run("b", 12, 20, ready=11), run("c", 25, 40, ready=21)],
        [("a", "b"), ("^b", "c")],
    )
    assert path_of(profile) == [
        ("a", "start", 0, 0, 0, 10),
        ("b", "data", 12, 2, 1, 8),
        ("c", "control", 25, 5, 4, 15),
    ]


def test_the_input_that_came_last_decides():
    profile = profile_of(
        [run("a", 0, 10), run("b", 0, 30), run("c", 31, 40)], [("a", "c"), ("b", "c")]
    )
    assert [piece[0] for piece in path_of(profile)] == ["b", "c"]


def test_a_branch_that_ends_early_is_not_on_the_path():
    profile = profile_of(
        [run("a", 0, 10), run("b", 11, 50), run("c", 11, 20)], [("a", "b"), ("a", "c")]
    )
    assert [piece[0] for piece in path_of(profile)] == ["a", "b"]


def test_an_output_goes_on_before_the_bookkeeping_ends():
    """The next begins while the one is still tidying up: its piece ends there."""
    profile = profile_of([run("a", 0, 10, done=7), run("b", 8, 20, ready=7)], [("a", "b")])
    assert path_of(profile) == [("a", "start", 0, 0, 0, 8), ("b", "data", 8, 0, 0, 12)]


def test_a_loop_goes_through_its_iterations():
    loop = []
    for turn in range(3):
        start = 10 + 20 * turn
        loop += [run("merge", start, start + 5), run("next", start + 10, start + 15)]
    profile = profile_of(
        [run("enter", 0, 8), *loop, run("exit", 60, 70)],
        [("enter", "merge"), ("next", "merge"), ("merge", "next"), ("merge", "exit")],
    )
    names = [piece[0] for piece in path_of(profile)]
    assert names == ["enter", *["merge", "next"] * 2, "merge", "exit"]


def test_between_devices_a_send_and_a_receive_are_one_edge():
    tensor = [("tensor_name", "t"), ("send_device", CPU), ("recv_device", OTHER)]
    attrs = [(name, *one) for name in ("_Send1", "_Recv2") for one in tensor]
    devices = {"_Recv2": OTHER, "b": OTHER}
    profile = profile_of(
        [run("a", 0, 10), run("b", 30, 40, ready=25, device=OTHER)],
        [("a", "_Send1"), ("_Recv2", "b")],
        devices=devices,
        attrs=attrs,
    )
    assert path_of(profile) == [("a", "start", 0, 0, 0, 10), ("b", "transfer", 30, 20, 5, 10)]


def test_a_recorded_transfer_is_a_piece_of_its_own():
    """The tensor was asked for before it was computed: the transfer begins with a's end."""
    tensor = [("tensor_name", "t"), ("send_device", CPU), ("recv_device", OTHER)]
    attrs = [(name, *one) for name in ("_Send1", "_Recv2") for one in tensor]
    label = f"[4B] [1.0Gb/s] t from {CPU} to {OTHER}"
    profile = profile_of(
        [
            run("a", 0, 10),
            run("RecvTensor", 6, 24, device=OTHER, kind="rpc", label=label),
            run("b", 30, 40, ready=25, device=OTHER),
        ],
        [("a", "_Send1"), ("_Recv2", "b")],
        devices={"_Recv2": OTHER, "b": OTHER},
        attrs=attrs,
    )
    assert path_of(profile) == [
        ("a", "start", 0, 0, 0, 10),
        ("RecvTensor", "data", 10, 0, 0, 14),
        ("b", "transfer", 30, 6, 5, 10),
    ]


def test_a_node_without_inputs_follows_the_source():
    profile = profile_of([run("_SOURCE", 0, 2), run("a", 9, 20, ready=3)], [("a", "")])
    assert path_of(profile) == [("_SOURCE", "start", 0, 0, 0, 2), ("a", "source", 9, 7, 6, 11)]


def test_without_a_graph_the_labels_tell_the_inputs():
    runs = [
        run("a", 0, 10, label="a = Const()"),
        run("b", 11, 20, label="[cpu 0.1MB 0.1MB] b = Neg(a:1, ^z)"),
    ]
    profile = Profile(FakeReader({"op_runs": runs, "steps": []}))
    assert [piece[:2] for piece in path_of(profile)] == [("a", "start"), ("b", "data")]


def test_a_graph_as_written_is_joined_by_name():
    """Its nodes ask for no device, or only for a part of its name."""
    runs = [run("a", 0, 10, device="/gpu:0"), run("b", 11, 20, device="/cpu:0")]
    profile = profile_of(runs, [("a", "b")], kind="graph_def")
    assert [piece[:2] for piece in path_of(profile)] == [("a", "start"), ("b", "data")]


def test_kernels_follow_their_launch_and_one_another():
    stream = "/device:GPU:0/stream:1"
    profile = profile_of(
        [
            run("a", 0, 3),
            run("b", 3, 6),
            run("a:Op", 5, 30, device=stream, kind="stream"),
            run("b:Op", 31, 50, device=stream, kind="stream"),
            run("b:Op", 31, 60, device="/device:GPU:0/stream:all", kind="stream_all",
                is_duplicate=True),
        ],
        [("a", "b")],
    )  # fmt: skip
    assert path_of(profile) == [
        ("a", "start", 0, 0, 0, 3),
        ("a:Op", "launch", 5, 2, 0, 25),
        ("b:Op", "stream", 31, 1, 0, 19),
    ]


def test_steps_are_chosen_by_id_or_name():
    rows = [run("a", 0, 10), {**run("b", 50, 70), "step_id": 4}]
    steps = [{"step_id": 0, "name": "first"}, {"step_id": 4, "name": "second"}]
    profile = Profile(FakeReader({"op_runs": rows, "steps": steps}))
    assert [piece[0] for piece in path_of(profile)] == ["b"]
    assert [piece[0] for piece in path_of(profile, "first")] == ["a"]
    assert [piece[0] for piece in path_of(profile, "0")] == ["a"]
    with pytest.raises(NotFoundError, match="no step '9' with executions; there is: 0, 4"):
        step_runs(profile, "9")


def test_nothing_was_executed():
    assert step_runs(Profile(FakeReader({"op_runs": []}))) is None


@pytest.fixture(params=["tf1_cnn_2", "tf1_control_flow_4", "tf1_grpc"])
def recorded(request, root):
    path = root / "tests" / "data" / "run_metadata" / f"{request.param}.pb.gz"
    with peakline.open(str(path)) as profile:
        yield profile


def test_recorded_paths_are_causal_and_whole(recorded):
    step = step_runs(recorded)
    path = critical_path(recorded, step)
    start, end = step.runs.array("start_ps"), step.runs.array("duration_ps")
    assert (path.start_ps, path.end_ps) == (start.min(), (start + end).max())
    assert path.busy_ps + path.wait_ps == path.end_ps - path.start_ps
    assert len(path.pieces) > 10
    assert path.pieces[0].name == "_SOURCE"
    free = path.start_ps
    for piece in path.pieces:
        assert piece.begin_ps == free + piece.wait_ps
        assert piece.busy_ps >= 0
        assert 0 <= piece.queued_ps <= piece.wait_ps
        assert piece.begin_ps >= piece.start_ps
        free = piece.begin_ps + piece.busy_ps
        assert free <= piece.start_ps + piece.duration_ps
    assert free == path.end_ps
    assert {piece.why for piece in path.pieces[1:]} <= {"data", "control", "transfer", "source"}


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
        result = Releases(runs, StepGraph(profile, "run 0"))
        chain = result.chain()
        assert chain == PlainWalk(runs, StepGraph(profile, "run 0"), result).chain(), seed
        lengths.add(len(chain))
    assert max(lengths) > 10


def test_it_ends_where_it_would_take_too_long(monkeypatch):
    run = {
        "device": DEVICES[0], "kind": "executor", "label": "a = Op(a)", "step_id": 0, "name": "a",
    }  # fmt: skip
    profile = Profile(FakeReader({"op_runs": [{**run, "start_ps": at} for at in range(9)]}))
    assert len(critical_path(profile, step_runs(profile)).pieces) == 9
    monkeypatch.setattr(releases, "_FREE_STEPS", -200)
    with pytest.raises(InputError, match="no critical path of this step is looked for"):
        critical_path(profile, step_runs(profile))
