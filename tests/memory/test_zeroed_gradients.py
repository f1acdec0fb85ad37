"""Gradients that are set to zero, against the same program that gives them back."""

import pickle

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

import peakline
from peakline.findings.kinds.zeroed_gradients import KIND

GRADIENTS, ACTIVATIONS = {0: 700, 1: 500, 2: 300}, {0: 400, 1: 600, 2: 200}
NODE = "autograd::engine::evaluate_function: "


def loop(*, keeps, steps=4, first=0):
    """A trace of three layers; ``keeps``: gradients are set to zero after the optimizer's step.
    Steps before ``first`` are not recorded.
    """
    rows, live, time = [], {}, 0

    def record(name, dur=2, cat="cpu_op", **args):
        rows.append((step, event("X", time, name, dur=dur, cat=cat, args=args)))

    def memory(key, size):
        nonlocal time
        amount = size or -live.pop(key)
        if size:
            live[key] = size
        if recorded := (step >= first or size):
            arguments = {"Bytes": amount, "Addr": hash(key) % 2**40, "Device Type": 0,
                         "Device Id": -1}  # fmt: skip
        rows.append((step, event("i", time + 1, "[memory]", cat="cpu_instant_event", s="t",
                                 args=arguments if recorded else {})))  # fmt: skip
        time += 3

    for step in range(steps):
        begin, at = time, len(rows)
        for layer, size in ACTIVATIONS.items():
            number = 10 * step + layer
            record("aten::linear", **{"Sequence number": number, "Fwd thread id": 0})
            memory(("activation", layer), size)
        for layer in (2, 1, 0):
            number = 10 * step + layer
            record(f"{NODE}AddmmBackward0", 2, **{"Sequence number": number, "Fwd thread id": 1})
            memory(("new", layer) if keeps and step else ("gradient", layer), GRADIENTS[layer])
            record(f"{NODE}torch::autograd::AccumulateGrad")
            if keeps and step:
                memory(("new", layer), 0)
            record(f"{NODE}Last")
            memory(("activation", layer), 0)
        record("Optimizer.step#SGD.step", cat="user_annotation")
        time += 4
        for layer in GRADIENTS:
            if keeps:
                record("aten::zero_")
                time += 4
            else:
                memory(("gradient", layer), 0)
        rows.insert(at, (step, event("X", begin, f"ProfilerStep#{step}", dur=time - begin,
                                     cat="user_annotation")))  # fmt: skip
        time += 5
    return [row for number, row in rows if number >= first]


def test_the_saving_is_what_the_mended_program_takes(tmp_path):
    with opened(tmp_path, loop(keeps=False)) as profile:
        assert [one for one in profile.memory().findings if one.kind == KIND.name] == []
        [healthy] = profile.memory().allocators
    with opened(tmp_path, loop(keeps=True)) as profile:
        (finding,) = [one for one in profile.memory().findings if one.kind == KIND.name]
        [faulty] = profile.memory().allocators
    assert finding.severity == "warning"
    assert faulty.peak_bytes - finding.evidence["saved_bytes"] == healthy.peak_bytes
    assert (finding.evidence["count"], finding.evidence["op"]) == (3, "aten::zero_")
    assert finding.evidence["bytes"] == sum(GRADIENTS.values())


def test_of_gradients_from_before_the_recording_no_size_is_promised(tmp_path):
    with opened(tmp_path, loop(keeps=True, first=1)) as profile:
        (finding,) = [one for one in profile.memory().findings if one.kind == KIND.name]
    assert finding.severity == "info"
    assert "saved_bytes" not in finding.evidence
    assert "before the recording" in finding.title


# Memory snapshots: no ops, and the threads of the backward pass have no frames.

TORCH = "/v/site-packages/torch"
FRAMES = {
    "forward": [("forward", "model.py", 12), ("_call_impl", f"{TORCH}/nn/modules/module.py", 9)],
    "call": [("backward", f"{TORCH}/autograd/__init__.py", 3)],
    "optimizer": [("step", f"{TORCH}/optim/adam.py", 5)],
    "backward": None,
}


def snapshot(path, *, keeps, chunks=1, steps=4, states_only=False, is_recorded_late=False):
    """A history of three layers, whose steps add up the gradients of ``chunks`` chunks; ``keeps``:
    they are set to zero. With ``states_only`` the optimizer allocates in its first step alone.
    Returns what `peakline` says of the kind, and the most bytes that were live.
    """
    trace, live, most, places = [], {}, 0, {}

    def address(key):
        return places.setdefault(key, len(places) + 1) << 24

    def record(action, key, size, part):
        frames = FRAMES[part]
        frames = [] if frames is None else [*frames, ("train", "train.py", 7)]
        where = [{"name": name, "filename": file, "line": line} for name, file, line in frames]
        trace.append(
            {"action": action, "addr": address(key), "size": size << 12, "stream": 0,
             "time_us": len(trace) // 3, "frames": where}
        )  # fmt: skip

    def alloc(key, size, part):
        nonlocal most
        live[key] = size
        most = max(most, sum(live.values()))
        record("alloc", key, size, part)

    def free(key, part):
        size = live.pop(key)
        record("free_requested", key, size, part)
        record("free_completed", key, size, part)

    for step in range(steps):
        if is_recorded_late and step == 1:
            trace.clear()
        for chunk in range(chunks):
            for layer, size in ACTIVATIONS.items():
                alloc(("activation", layer), size, "forward")
            alloc("ones", 1, "call")
            if not step + chunk:
                alloc("workspace", 800, "backward")
            for layer in (2, 1, 0):
                is_there = ("gradient", layer) in live
                alloc(("new" if is_there else "gradient", layer), GRADIENTS[layer], "backward")
                if is_there:
                    free(("new", layer), "backward")
                free(("activation", layer), "backward")
            free("ones", "call")
        for layer, size in GRADIENTS.items():
            if not step:
                alloc(("state", layer), size, "optimizer")
        if not states_only:
            alloc("update", 10, "optimizer")
            free("update", "optimizer")
        for layer in GRADIENTS:
            if not keeps:
                free(("gradient", layer), "forward")
    blocks = {address(key): size << 12 for key, size in live.items()}
    segments = [
        {"device": 0, "address": address, "total_size": size, "stream": 0, "segment_type": "large",
         "blocks": [{"size": size, "requested_size": size, "state": "active_allocated",
                     "frames": []}]}
        for address, size in blocks.items()
    ]  # fmt: skip
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [trace]}))
    with peakline.open(path) as profile:
        findings = [one for one in profile.memory().findings if one.kind == KIND.name]
    return findings, most << 12


@each_row("states_only", [False, True])
def test_a_snapshot_shows_gradients_that_each_step_adds_to(tmp_path, states_only):
    path = tmp_path / "snapshot.pickle"
    healthy, least = snapshot(path, keeps=False, states_only=states_only)
    (finding,), most = snapshot(path, keeps=True, states_only=states_only)
    assert healthy == []
    assert finding.severity == "warning"
    assert finding.evidence["saved_bytes"] == most - least
    assert finding.evidence["bytes"] == sum(GRADIENTS.values()) << 12
    assert (finding.evidence["function"], finding.evidence["count"]) == ("train", 3)


@each_row(
    "case",
    [
        {"keeps": False, "chunks": 4},
        {"keeps": False, "chunks": 4, "states_only": True},
        {"keeps": False, "chunks": 8, "steps": 1},
        {"keeps": True, "is_recorded_late": True},
        {"keeps": True, "steps": 2},
    ],
)
def test_a_snapshot_of_gradients_that_add_up_in_a_step_is_silent(tmp_path, case):
    assert snapshot(tmp_path / "snapshot.pickle", **case)[0] == []
