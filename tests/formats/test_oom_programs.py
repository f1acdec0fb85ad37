"""Compiled programs that do not fit: totals, padding, tuples, and wordings of other releases."""

import re

import pytest
from tests.each_row import each_row
from tests.formats.oom_texts import GIB, KIB, MIB, findings_of, parts_of, read

from peakline.tables.tables import check_columns

STATS = """
E0101 1 c.cc:1] RESOURCE_EXHAUSTED: Failed to allocate request for 3.25GiB (3489660999B) on device ordinal 5
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.50GiB
              constant allocation:    24.6KiB
        maybe_live_out allocation:  512.00MiB
     preallocated temp allocation:    3.25GiB
                 total allocation:    5.00GiB
              total fragmentation:       112B (0.00%)
Peak buffers:
	Buffer 1:
		Size: 3.00GiB
		XLA Label: fusion
		Shape: f32[3,268435456]
		==========================

	Buffer 2:
		Size: 24B
		XLA Label: custom-call
		Shape: (f32[3,268435456]{1,0}, /*index=1*/s8[4]{0}, u8[1])
		==========================
"""  # noqa: E501 (as it is printed)


def test_totals_of_a_program_and_the_exact_request():
    (finding,) = findings_of(STATS)
    assert finding.evidence["requested_bytes"] == 3489660999
    assert finding.evidence["device"] == "5"
    assert parts_of(finding) == {
        "parameters": 3 * GIB // 2,
        "constants": round(24.6 * KIB),
        "outputs": 512 * MIB,
        "temporaries": round(3.25 * GIB),
        "total": 5 * GIB,
        "fragmentation": 112,
    }
    assert "parameters 1.5 GiB, constants 24.6 KiB, outputs 512.0 MiB" in finding.suggestion


def test_a_tuple_is_none_of_its_elements():
    buffers = check_columns("buffers", read(STATS).read("buffers")).to_pylist()
    assert [(row["data_type"], row["shape"], row["allocated_bytes"]) for row in buffers] == [
        ("f32", "[3, 268435456]", 3 * GIB),
        ("tuple", "(f32[3,268435456], /*index=1*/s8[4], u8[1])", 24),
    ]


def test_the_same_error_again_gives_no_totals_of_its_own():
    (finding,) = findings_of(STATS + STATS)
    assert len(parts_of(finding)) == 6


TPU = """
{head}
Total hbm usage >= 17.50G:
    reserved        528.00M
    program          {program}
    arguments        {arguments}

Output size 1.25G; shares 1.00G with arguments.

Program hbm requirement {program}:
    global           29.82M
    scoped           17.43M
    HLO temp         {program} ({utilization}, 0.7% fragmentation (293.84M))
    overlays         1.20M

  Largest program allocations in hbm:

  1. Size: {size}
     Operator: op_name="net/{op}"
     Shape: f32[4096,512,{last}]{2,1,0:T(8,128)}
     Unpadded size: {unpadded}
     {extra}
     Allocation type: HLO temp
     ==========================
"""
HEAD = (
    "Ran out of memory in memory space hbm. Used 17.00G of 15.48G hbm. Exceeded hbm capacity by "
    "1.52G."
)


def tpu(**words):
    """A compiler's report; braces of layouts stand as they are."""
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), TPU)


PADDED = {
    "head": HEAD, "program": "17.00G", "arguments": "unknown size", "size": "8.00G", "op": "pad",
    "utilization": "45.0% utilization", "last": "8", "unpadded": "512.00M",
    "extra": "Extra memory due to padding: 7.50G (16.0x expansion)",
}  # fmt: skip
PLAIN = {
    "head": HEAD, "program": "14.00G", "arguments": "3.00G", "size": "1.00G", "op": "dot",
    "utilization": "100.0% utilization: Unpadded (13.90G) Padded (13.90G)", "last": "128",
    "unpadded": "1.00G", "extra": "XLA label: fusion.1 = fusion(p0)",
}  # fmt: skip


def test_padding_is_a_question_of_the_layout():
    (finding,) = findings_of(tpu(**PADDED))
    assert finding.evidence["cause"] == "padding"
    # 55 % of 17 GiB of temporaries are more than the one tensor that is listed.
    padding = 17 * GIB - round(17 * GIB * 0.45)
    assert f"Padding takes {padding / GIB:.1f} GiB" in finding.suggestion
    assert "7.5 GiB of it for f32[4096, 512, 8] net/pad" in finding.suggestion
    assert "split" not in finding.suggestion
    parts = parts_of(finding)
    assert parts["padding 1. f32[4096, 512, 8] net/pad"] == 15 * GIB // 2
    assert "arguments" not in parts


def test_a_program_without_padding_is_too_large():
    (finding,) = findings_of(tpu(**PLAIN))
    assert finding.evidence["cause"] == "larger_than_limit"
    assert parts_of(finding) == {
        "exceeded": round(1.52 * GIB),
        "total": round(17.5 * GIB),
        "reserved": 528 * MIB,
        "program": 14 * GIB,
        "arguments": 3 * GIB,
        "outputs": round(1.25 * GIB),
        "global": round(29.82 * MIB),
        "scoped": round(17.43 * MIB),
        "temporaries": 14 * GIB,
        "unpadded temporaries": round(13.9 * GIB),
        "overlays": round(1.2 * MIB),
    }
    assert "17.0 GiB needed, 15.5 GiB at most" in finding.title


def test_a_report_without_its_first_line():
    (finding,) = findings_of(tpu(**PLAIN | {"head": "compile log"}))
    assert finding.evidence["allocator"] == "hbm"
    assert finding.evidence["requested_bytes"] == round(17.5 * GIB)
    assert parts_of(finding)["arguments"] == 3 * GIB
    assert not finding.evidence["is_complete"]


RUN = """
RuntimeError: Resource exhausted: From /job:tpu_worker/replica:0/task:0:
Attempting to reserve 1.95G at the bottom of memory. That was not possible. There are 1.92G free, 0B reserved, and 1.92G reservable.;
HBM capacity 8.00G:
       Top-of-Memory reserved:  529.00M (     554,696,704 bytes)
          Currently allocated:    5.58G (   5,996,068,864 bytes)
          Program requirement:    1.95G (   2,090,206,208 bytes)
                               ------------
      Available after request:   -0.05G (     -51,037,952 bytes)
; attempting reservation for program memory
Heap allocator status:
    Max free chunk             1.90G (1.0% fragmentation)
"""  # noqa: E501 (as it is printed)


def test_a_tpu_that_is_full_at_run_time():
    (finding,) = findings_of(RUN)
    evidence = finding.evidence
    assert evidence["cause"] == "full"
    assert evidence["requested_bytes"] == 2090206208
    assert evidence["in_use_bytes"] == 5996068864
    assert evidence["limit_bytes"] == 8 * GIB
    assert evidence["device_free_bytes"] == round(1.92 * GIB)
    assert evidence["largest_free_bytes"] == round(1.9 * GIB)
    assert parts_of(finding) == {"reserved": 554696704}


def test_enough_free_on_a_tpu_and_refused():
    text = RUN.partition("HBM")[0].replace("1.92G free", "2.50G free")
    (finding,) = findings_of(text)
    assert finding.evidence["cause"] == "refused"


@each_row(
    ("text", "numbers"),
    [
        (
            (
                "Ran out of memory on HBM, the total memory required for HLO temporaries (98.58G) "
                "exceeds available HBM (94.74G). HLO module: jit_fwd_bwd."
            ),
            ("hbm", round(98.58 * GIB), round(94.74 * GIB), "jit_fwd_bwd"),
        ),
        (
            (
                "Allocation (size=21474836480) would exceed memory (size=17179869184) :: "
                "#allocation14 [shape = 'f32[20,5]{1,0}', space=vmem, size = 0xff, tag = 'out']"
            ),
            ("vmem", 21474836480, 17179869184, "out"),
        ),
        (
            "Allocation (size=33) would exceed memory (size=32) :: #allocation1 [...",
            ("", 33, 32, None),
        ),
        (
            (
                "Ran out of memory in memory space vmem while allocating on stack for %k = f32[8]. "
                "Scoped allocation with size 16.50M and limit 16.00M exceeded scoped vmem limit by"
            ),
            ("vmem", round(16.5 * MIB), 16 * MIB, None),
        ),
    ],
)
def test_other_wordings_of_what_does_not_fit(text, numbers):
    (finding,) = findings_of(text)
    evidence = finding.evidence
    names = ("allocator", "requested_bytes", "limit_bytes")
    assert (*(evidence[name] for name in names), evidence.get("op")) == numbers
    assert evidence["cause"] == "larger_than_limit"


@pytest.mark.parametrize("text", ["Total hbm usage >= ", "Total hbm usage >= x:\n"])
def test_a_headless_list_that_is_none(text):
    assert findings_of(text) == []
