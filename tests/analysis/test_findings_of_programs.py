"""What the memory of compiled programs says where no allocator recorded anything."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.each_row import each_row
from tests.shared import shared

from peakline.findings.catalogue import kinds, memory_findings
from peakline.findings.context import MemoryContext
from peakline.findings.program_values import forms_of, programs_of, what_is
from peakline.memory.peak.temporaries import (
    ATTENTION,
    BROADCAST,
    ONE_HOT,
    PATCHES,
    PER_EXAMPLE,
    SPARSE,
)
from peakline.timing.programs.answer import LiveBuffer

MIB = 1 << 20
LINE = {"source_file": "/me/train.py", "source_line": 12}


def value(name, shape, mib, kind="temporary"):
    return LiveBuffer(
        instruction="fusion.1", opcode="fusion", op_name=name, bytes=int(mib * MIB),
        unpadded_bytes=None, shape=shape, kind=kind, **LINE,
    )  # fmt: skip


def program(*values, name="jit_step", number=0, need=None, run_ps=1, runs=1, advice=()):
    return SimpleNamespace(
        name=name, label=f"{name}({number})", number=number, run_ps=run_ps, run_count=runs,
        peak_bytes=sum(one.bytes for one in values) if need is None else need * MIB,
        advice=advice, largest=lambda count: values[:count],
    )  # fmt: skip


def findings_of(profile):
    return memory_findings(MemoryContext(programs=programs_of(profile)))


@pytest.fixture
def found(monkeypatch):
    """The findings of some programs, of which a device needs most for the first."""

    def find(first, *others):
        every = [first, *others]
        need = SimpleNamespace(
            device="TPU:0", program=first, bytes=first.peak_bytes, runs=first.run_count,
            is_run=bool(others),
        )  # fmt: skip
        findings, needs = "peakline.findings", [one.peak_bytes for one in every]
        monkeypatch.setattr(f"{findings}.program_values.device_needs", lambda _: (need,))
        monkeypatch.setattr(f"{findings}.lone_peaks.every_need", lambda _: (every, needs))
        totals = np.array([(one.run_count, one.run_ps) for one in every]).T
        monkeypatch.setattr(f"{findings}.lone_peaks.run_totals", lambda _: totals)
        listed = findings_of(SimpleNamespace(programs=lambda: every))
        for one in listed:
            said = {*one.evidence, *(name for row in one.rows for name in row)}
            assert said <= set(kinds()[one.kind].columns)
        return listed

    return find


def test_values_of_one_shape_are_together():
    live = [value("a", "f32[8]", 1), value("b", "f32[4]", 3), value("c", "f32[8]", 4)]
    live.append(value("w", "f32[8]", 9, "parameter"))
    forms = forms_of(live, "temporary")
    assert [(form.shape, form.bytes // MIB, form.sides) for form in forms] == [
        ("f32[8]", 5, (8,)), ("f32[4]", 3, (4,))
    ]  # fmt: skip
    assert forms[0].first.op_name == "a"


@each_row(
    ("name", "shape", "expected"),
    [
        ("jit(step)/jit(_one_hot)/eq", "f32[64,9]", ONE_HOT),
        ("jit(step)/conv_patches", "f32[64,9]", PATCHES),
        ("jit(step)/vmap(mul)", "f32[64,7,5]", PER_EXAMPLE),
        ("jit(step)/softmax/exp", "f32[8,64,64]", ATTENTION),
        ("jit(step)/sub", "f32[64,64,9]", BROADCAST),
        ("jit(step)/sub", "f32[8,64,64]", ATTENTION),
        ("jit(step)/scatter-add", "f32[64,64]", SPARSE),
        ("jit(step)/concatenate", "f32[8,32,32,75]", PATCHES),
        # What a model needs, or nobody says who made it.
        ("jit(step)/scatter-add", "f32[64,63,9]", BROADCAST),
        ("jit(step)/dot_general", "f32[64,64,9]", ""),
        ("", "f32[64,64,9]", ""),
        ("jit(step)/sub", "f32[7,5]", ""),
    ],
)
def test_what_a_form_is(name, shape, expected):
    live = [value(name, shape, 8), value("w", "f32[7,5]", 1, "parameter")]
    assert what_is(forms_of(live, "temporary")[0], live) == expected


def test_a_temporary_that_is_not_much_larger_than_others_is_none():
    live = [value("jit(step)/sub", "f32[64,64,9]", 8), value("w", "f32[7]", 3, "parameter")]
    assert what_is(forms_of(live, "temporary")[0], live) == ""
    # Of all pairs of a layer's outputs: a Hessian.
    live[0] = value("jit(step)/select_n", "f32[64,64]", 8)
    assert what_is(forms_of(live, "temporary")[0], live) == BROADCAST
    live[0] = value("jit(step)/dot_general", "f32[64,64]", 8)
    assert what_is(forms_of(live, "temporary")[0], live) == ""


def test_huge_temporary(found):
    big = value("jit(step)/sub", "f32[64,64,9]", 8)
    (finding,) = found(program(big, big, value("w", "f32[7]", 1, "parameter")))
    assert (finding.kind, finding.severity) == ("huge_temporary", "warning")
    assert finding.title == (
        "jit_step(0): 2 x f32[64,64,9] of jit(step)/sub (a broadcast intermediate) hold 16.0 MiB "
        "of the 17.0 MiB that the program needs, made in train.py:12"
    )
    assert finding.evidence["least_saved_bytes"] == 8 * MIB
    assert found(program(value("jit(step)/dot_general", "f32[64,9]", 8))) == []


def test_one_value_in_other_shapes_is_together(found):
    big, flat = value("jit(step)/mul", "f32[64,8,9]", 8), value("jit(step)/mul", "f32[64,72]", 8)
    (finding,) = found(program(big, flat, value("w", "f32[7]", 2, "parameter"), need=30))
    assert (
        "f32[64,8,9] of jit(step)/mul (a broadcast intermediate) and 1 of other shapes hold "
        in (finding.title)
    )
    assert finding.evidence["bytes"] == 16 * MIB


def test_gradients_of_examples_are_those_of_all_weights(found):
    weights = value("w", "f32[7,5]", 1, "parameter"), value("v", "f32[5,3]", 1, "parameter")
    made = [value("jit(step)/vmap(mul)", f"f32[64,{one}]", 8) for one in ("7,5", "5,3")]
    (finding,) = found(program(*made, *weights))
    assert finding.evidence["bytes"] == 16 * MIB
    in_pieces = [value("jit(step)/while/body/vmap(mul)", one.shape, 8) for one in made]
    assert found(program(*in_pieces, *weights)) == []


def test_float64_memory(found):
    weights = value("w", "f64[7]", 3, "parameter")
    (finding,) = found(program(weights, value("jit(step)/mul", "f32[7]", 2)))
    assert (finding.kind, finding.evidence["wide_bytes"]) == ("float64_memory", 3 * MIB)
    narrow = value("w", "f32[7]", 3, "parameter")
    assert found(program(narrow, value("jit(step)/mul", "f64[7]", 0.5))) == []


def test_what_is_not_donated_is_a_copy(found):
    def advised(size, kind="donate"):
        row = {"op_name": "params['w']", "shape": "f32[7]"}
        advice = SimpleNamespace(
            kind=kind, bytes=size * MIB, rows=[row], title="argument 0", suggestion="donate it"
        )
        return found(program(value("w", "f32[7]", 10, "parameter"), advice=[advice]))

    (finding,) = advised(4)
    assert (finding.kind, finding.evidence["op"]) == ("redundant_copy", "params['w']")
    assert finding.evidence["copy_bytes"] == 4 * MIB
    # Less than a tenth of what it needs, less than 1 MiB, other advice.
    assert advised(0.9) == advised(0.5) == advised(4, "recompute") == []


LOGITS = value("jit(f)/dot_general", "f32[9]", 30)


def test_a_program_of_evaluation_needs_most(found):
    train = program(name="jit_train", number=1, need=10, run_ps=100, runs=20)
    (finding,) = found(program(LOGITS, name="jit_evaluate", runs=10), train)
    assert finding.kind == "peak_in_evaluation"
    assert finding.title == (
        "jit_evaluate(0) needs 30.0 MiB, jit_train(1) and all others 10.0 MiB at most: f32[9] of "
        "jit(f)/dot_general, made in train.py:12"
    )
    (finding,) = found(program(LOGITS, name="jit_merge", runs=2), train)
    assert finding.kind == "peak_in_one_step"


@each_row(
    ("first", "need"),
    [
        # It runs as often, longest, or needs little more.
        ({"name": "jit_merge", "runs": 20}, 10),
        ({"name": "jit_evaluate", "run_ps": 200}, 10),
        ({"name": "jit_evaluate"}, 25),
    ],
)
def test_a_program_that_needs_most_and_is_the_step(found, first, need):
    train = program(name="jit_train", number=1, need=need, run_ps=100, runs=20)
    assert found(program(LOGITS, **first), train) == []


def test_of_a_file_of_one_program():
    # It sorts what it is given: as large as that.
    path = "hlo/module_0020.jit_lower_precision_sorted.cpu_after_optimizations.hlo.pb"
    (finding,) = findings_of(shared(path))
    assert finding.kind == "float64_memory"
    assert finding.title.endswith("are float64: f64[512,512] of given[0]")
