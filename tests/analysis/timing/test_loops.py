"""Loops of TensorFlow's graphs: which scopes they are, and which are loops of small ops."""

from tests.analysis.timing.kineto_jobs import of_kind
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.each_row import each_row

from peakline.timing.ops.tiny import loop_of

US = 10**6
BODY = "loss/while/body/_1/loss/while"
GRADIENT = "gradient_tape/loss/while/loss/while_grad/body/_7/gradient_tape/loss/while"


@each_row(
    ("name", "loop"),
    [
        (f"{BODY}/MatMul", "loss/while"),
        ("loss/while/cond/_0/loss/while/Less", "loss/while"),
        (f"{GRADIENT}/MatMul_1", "loss/while"),
        ("PartitionedCall/map/while/body/_3/map/while/Slice", "PartitionedCall/map/while"),
        ("decode/body/_9/decode/while/body/_2/Mul", "decode"),
        ("gradient_tape/decode/decode_grad/body/_9/Mul", "decode"),
        ("glimpse/map/while/cut/Slice", "glimpse/map/while"),
        ("gradients/glimpse/map/while/cut/Slice_grad/Pad", "glimpse/map/while"),
        ("glimpse/concat", ""),
        ("choice/then/_4/MatMul", ""),
        ("gradients/AddN", ""),
    ],
)
def test_the_loop_that_an_op_is_of(name, loop):
    assert loop_of(name, {"glimpse/map/while"}) == loop


def job(ops, turns=24, apart=20):
    """Eight steps of 2 ms, in each of which ``ops`` (name and us) run in turns from 500 us on."""
    events, steps = [], []
    for number in range(8):
        at = 2000 * number * US
        steps.append((f"train {number}", at, at + 2000 * US))
        events.append((*steps[-1], number))
        events.append(("dense/MatMul:MatMul", at, at + 300 * US))
        now = at + 500 * US
        for _ in range(turns):
            for name, length in ops:
                events.append((name, now, now + length * US))
                now += (length + apart) * US
    return profile_of({HOST_PLANE: {"1": events}}, steps)


SMALL = [(f"{BODY}/{name}:{name}", 2) for name in ("Slice", "Mean", "Sub")]


def test_a_loop_is_named_with_its_turns():
    (finding,) = of_kind(job(SMALL), "tiny_ops")
    assert finding.severity == "info"
    assert finding.title.startswith(
        "24 turns a step of the loop loss/while, of 3 small ops (Slice, Mean, Sub), 0.002 ms each"
    )
    assert (finding.evidence["loop"], finding.evidence["turns"]) == ("loss/while", 24.0)
    # What lies between two ops of a loop is the loop's, and no other op's.
    (more,) = of_kind(job(SMALL[:2], apart=60), "tiny_ops")
    assert more.evidence["loop_ps"] > 6 * 1400 * US


def test_turns_of_a_map_need_no_products_of_their_own():
    body = "transform/map/while/body/_1/transform/map/while"
    ops = [(f"{body}/MatVec/MatMul:MatMul", 20), (f"{body}/Sub:Sub", 2)]
    (finding,) = of_kind(job(ops), "tiny_ops")
    assert finding.evidence["loop"] == "transform/map/while"


def test_a_loop_with_its_gradient_is_one():
    back = [(f"{GRADIENT}/{name}:{name}", 2) for name in ("Mul", "Sum", "AddN")]
    assert of_kind(job([*SMALL, *back], turns=12), "tiny_ops") == []
    (finding,) = of_kind(job([*SMALL, *back], apart=5), "tiny_ops")
    assert (finding.evidence["loop"], finding.evidence["ops_per_step"]) == ("loss/while", 144.0)


@each_row(
    ("ops", "turns"),
    [
        # Few turns, large ops, whole steps, and a recurrent net.
        (SMALL, 8),
        ([(f"{BODY}/Conv:Mean", 150), (f"{BODY}/Sub:Sub", 150)], 24),
        ([*SMALL, (f"{BODY}/AssignSubVariableOp:AssignSubVariableOp", 2)], 24),
        ([*SMALL, (f"{BODY}/cell/MatMul:MatMul", 20)], 24),
    ],
)
def test_other_loops_are_silent(ops, turns):
    assert of_kind(job(ops, turns), "tiny_ops") == []
