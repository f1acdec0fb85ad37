"""Gradients that are set to zero, against the same program that gives them back."""

from tests.formats.chrome_traces import event, opened

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
