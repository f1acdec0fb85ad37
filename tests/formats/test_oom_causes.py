"""Why a request failed, by all that a text says: its own words, odd ones, those of other builds."""

from tests.each_row import each_row
from tests.formats.oom_texts import GIB, KIB, MIB, findings_of, parts_of

CUDA = (
    "torch.OutOfMemoryError: {word} out of memory. Tried to allocate {asked}. GPU 3 has a total "
    "capacity of 80.00 GiB of which {free} is free. {processes}{allowed}Of the allocated memory "
    "{allocated} is allocated by PyTorch, {pools}and {reserved} is reserved by PyTorch but "
    "unallocated."
)
BRACKET = (
    "RuntimeError: {word} out of memory. Tried to allocate {asked} ({word} 2; 60.00 GiB total "
    "capacity; {allocated} already allocated; {active}{free} free; {reserved} reserved in total by "
    "PyTorch)If reserved memory is >> allocated memory try"
)
NO = {"word": "CUDA", "processes": "", "allowed": "", "pools": "", "active": ""}


def sentence(form=CUDA, **words):
    return form.format(**NO | words)


def own(size):
    return f"Including non-PyTorch memory, this process has {size} memory in use. "


@each_row(
    ("text", "cause", "words"),
    [
        # The device has room: no word of other processes.
        (
            sentence(asked="2.00 GiB", free="2.00 GiB", allocated="70.00 GiB", reserved="0 bytes"),
            "refused",
            "The device reported 2.0 GiB free, which is enough",
        ),
        (
            sentence(
                asked="2.00 GiB", free="40.00 GiB", allocated="38.00 GiB", reserved="1.00 GiB",
                allowed="40.00 GiB allowed; ",
            ),
            "process_limit",
            "may take 40.0 GiB of the device",
        ),
        (
            sentence(
                asked="1.00 GiB", free="60.00 GiB", allocated="8.00 GiB", reserved="1.00 GiB",
                allowed="70.00 GiB allowed; ", word="XPU",
            ),
            "refused",
            "names a limit of 70.0 GiB",
        ),
        # Others have most of it, by their ids; 2^64 bytes are a driver's word for not known.
        (
            sentence(
                asked="512.00 MiB", free="100.00 MiB", allocated="20.00 GiB", reserved="1.00 GiB",
                processes=f"Process 77 has 50.00 GiB memory in use. Process 78 has 17179869184.00 "
                f"GiB memory in use. {own('22.00 GiB')}",
            ),
            "other_processes",
            "On the device is process 77 with 50.0 GiB. End them",
        ),
        # In a container its own process is listed like a stranger's.
        (
            sentence(
                asked="512.00 MiB", free="100.00 MiB", allocated="76.00 GiB", reserved="1.00 MiB",
                processes="Process 4711 has 77.00 GiB memory in use. ",
            ),
            "device_full",
            "at least 412.0 MiB more must be free",
        ),
        (
            sentence(
                asked="4.00 GiB", free="1.00 GiB", allocated="40.00 GiB", reserved="1.00 GiB",
                processes=own("78.50 GiB"),
            ),
            "outside_allocator",
            "holds 37.5 GiB of the device outside the allocator",
        ),
        (
            sentence(
                asked="1.00 GiB", free="100.00 MiB", allocated="76.00 GiB", reserved="2.00 GiB",
                pools="with 60.00 GiB allocated in private pools (e.g., CUDA Graphs), ",
                processes=own("79.00 GiB"),
            ),
            "private_pools",
            "60.0 GiB of the 76.0 GiB allocated are in private pools",
        ),
        # Little in pools is not the cause.
        (
            sentence(
                asked="1.00 GiB", free="100.00 MiB", allocated="76.00 GiB", reserved="2.00 GiB",
                pools="with 118.00 MiB allocated in private pools (e.g., CUDA Graphs), ",
            ),
            "fragmented",
            "expandable_segments",
        ),
        (
            sentence(
                BRACKET, word="NPU", asked="1.00 GiB", free="20.00 MiB", allocated="6.00 GiB",
                reserved="6.65 GiB", active="6.10 GiB current active; ",
            ),
            "other_processes",
            "neither free nor in this pool",
        ),
        (
            sentence(
                BRACKET, word="HIP", asked="2.26 GiB", free="3.03 GiB", allocated="781.59 MiB",
                reserved="1.24 GiB",
            ),
            "refused",
            "WSL",
        ),
        (
            ("MPS backend out of memory (MPS allocated: 2.00 GB, other allocations: 15.00 GB, max "
            "allowed: 18.00 GB). Tried to allocate 1.50 GB on shared pool."),
            "other_allocations",
            "15.0 GiB are allocations of Metal outside PyTorch's pool, more than PyTorch's 2.0 GiB",
        ),
        (
            ("MPS backend out of memory (MPS allocated: 16.00 GiB, other allocations: 384.00 KiB, "
            "max allowed: 18.00 GiB). Tried to allocate 3.00 GiB on private pool."),
            "full",
            "at least 1.0 GiB more must be free",
        ),
    ],
)  # fmt: skip
def test_causes_by_all_that_the_text_says(text, cause, words):
    (finding,) = findings_of(text)
    assert finding.evidence["cause"] == cause
    assert words in finding.suggestion


def test_numbers_of_other_devices():
    text = sentence(
        word="MUSA", asked="28.00 GiB", free="9.25 GiB", allocated="13.18 GiB",
        reserved="32.39 GiB",
    )  # fmt: skip
    (finding,) = findings_of(f"MemoryError: {text}")
    assert finding.evidence["allocator"] == "musa:3"
    assert finding.evidence["device_free_bytes"] == round(9.25 * GIB)
    assert finding.evidence["capacity_bytes"] == 80 * GIB


def test_parts_of_a_message():
    text = sentence(
        asked="1.00 GiB", free="1.00 MiB", allocated="5.00 GiB", reserved="2.00 GiB",
        allowed="70.00 GiB allowed; ",
        pools="with 4.00 GiB allocated in private pools (e.g., CUDA Graphs), ",
        processes=f"Process 9 has 3.00 MiB memory in use. {own('8.00 GiB')}",
    )  # fmt: skip
    (finding,) = findings_of(text)
    assert parts_of(finding) == {
        "allowed": 70 * GIB,
        "private_pools": 4 * GIB,
        "this_process": 8 * GIB,
        "process 9": 3 * MIB,
    }


@each_row("width", [55, 72, 80, 106])
def test_a_message_wrapped_at_blanks(width):
    import textwrap

    text = sentence(
        asked="304.00 MiB", free="218.00 MiB", allocated="70.00 GiB", reserved="744.00 MiB",
        pools="with 118.00 MiB allocated in private pools (e.g., CUDA Graphs), ",
        processes=own("79.00 GiB"),
    )  # fmt: skip
    (finding,) = findings_of("\n".join(textwrap.wrap(text, width)))
    (whole,) = findings_of(text)
    assert finding == whole


OLD = """
2017-11-06 08:55:14.593446: I gpu_device.cc:1030] Found device 0 with properties: 
name: Tesla major: 3 minor: 5
totalMemory: 11.00GiB freeMemory: {start}
2017-11-06 08:55:24.919606: W bfc_allocator.cc:273] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00MiB.  Current allocation summary follows.
I bfc_allocator.cc:685]      Summary of in-use Chunks by size: 
I bfc_allocator.cc:688] 3 Chunks of size 1024 totalling 3.0KiB
I bfc_allocator.cc:688] 2 Chunks of size 2097152 totalling 4.00MiB
I bfc_allocator.cc:692] Sum Total of in-use chunks: 4.00MiB
I bfc_allocator.cc:694] Stats: 
Limit:                  5242880
InUse:                  4197376
W bfc_allocator.cc:277] ****************************************************************************************************
W op_kernel.cc:1192] Resource exhausted: OOM when allocating tensor with shape[3,262144]
ResourceExhaustedError: OOM when allocating tensor with shape[3,262144]
     [[Node: net/mul = Mul[T=DT_FLOAT, _device="/gpu:0"](a, b)]]
Caused by op u'net/mul', defined at:
  File "job/train.py", line 12, in <module>
    main()
  File "job/nets/model.py", line 34, in build
    return a * b
  File "/usr/lib/python2.7/site-packages/tensorflow/python/ops/math_ops.py", line 9, in mul
    x
"""  # noqa: E501, W291 (lines as they are printed)


def test_an_old_dump_without_its_chunk_list():
    (finding,) = findings_of(OLD.format(start="10.90GiB"))
    evidence = finding.evidence
    assert (evidence["cause"], evidence["op"]) == ("full", "net/mul")
    assert (evidence["data_type"], evidence["requested_bytes"]) == ("float", 3 * 262144 * 4)
    # 5242880 - 4197376, by the statistics alone.
    assert evidence["free_bytes"] == 1045504
    assert evidence["source"] == "model.py:34"


def test_another_process_held_the_device_at_the_start():
    (finding,) = findings_of(OLD.format(start="100.00MiB"))
    assert finding.evidence["cause"] == "other_processes"
    assert finding.suggestion.startswith("Of the 11.0 GiB of the device 100.0 MiB were free when")


def test_the_sizes_of_a_summary_are_buffers():
    from tests.formats.oom_texts import read

    rows = read(OLD.format(start="9.00GiB")).read("buffers").array("allocated_bytes")
    assert sorted(rows.tolist()) == [KIB] * 3 + [2 * MIB] * 2


def of_ranks(count, requested, **other):
    """Eight processes, each with its device; what they have in use differs a little."""
    return "".join(
        f"[rank{n}]: "
        + sentence(
            asked=requested, free="1.00 GiB", allocated=f"70.{n:02} GiB",
            reserved="100.00 MiB", **other,
        ).replace("GPU 3", f"GPU {n}")
        + "\n"
        for n in range(count)
    )  # fmt: skip


def test_ranks_that_fail_alike_are_one_finding():
    text = of_ranks(8, "2.00 GiB")
    # Each wrapper prints it again.
    (finding,) = findings_of(text + "During handling of the above exception\n" + text)
    assert finding.evidence["alike"] == ", ".join(f"cuda:{n}" for n in range(8))
    assert finding.evidence["failed_requests"] == 8
    assert finding.title.startswith("cuda:0 ran out of memory, and 7 more devices alike: 2.0 GiB")


def test_other_numbers_are_other_failures():
    first, second = of_ranks(1, "2.00 GiB"), of_ranks(2, "3.00 GiB").splitlines()[1]
    assert [one.evidence["allocator"] for one in findings_of(f"{first}{second}\n")] == [
        "cuda:0",
        "cuda:1",
    ]
    much_less = of_ranks(2, "2.00 GiB").splitlines()[1].replace("70.01", "60.01")
    assert len(findings_of(f"{first}{much_less}\n")) == 2


TRACE = """
Traceback (most recent call last):
  File "/app/train.py", line 88, in <module>
    loss = step(batch)
  File "/app/nets/block.py", line 12, in forward
    return self.mlp(x)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1553, in _call_impl
    return forward_call(*args)
{error}
"""


def test_the_line_of_the_program_that_requested_it():
    short = "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB."
    for error in (sentence(BRACKET, word="CUDA", asked="1.00 GiB", free="1.00 MiB",
                           allocated="58.00 GiB", reserved="59.00 GiB"), short,
                  "RuntimeError: CUDA error: out of memory"):  # fmt: skip
        text = TRACE.format(error=error)
        assert findings_of(text)[0].evidence["source"] == "block.py:12", error
        ranks = "".join(f"[rank1]: {line}\n" for line in text.splitlines())
        assert findings_of(ranks)[0].evidence["source"] == "block.py:12", error
    one = 'Traceback (most recent call last):\n  File "a.py", line 7, in f\n' + short
    assert findings_of(one)[0].evidence["source"] == "a.py:7"
    # Another stack, long before, made nothing of it.
    far = TRACE.format(error="ValueError") + "epoch\n" * 2000 + short
    assert "source" not in findings_of(far)[0].evidence


def test_what_a_caller_can_do_without_is_no_failure(tmp_path):
    import pytest

    from peakline import open as open_profile
    from peakline.errors import UnknownFormatError

    log = tmp_path / "train.log"
    log.write_text(
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.50GiB with freed_by_count=0. "
        "The caller indicates that this is not a failure\n"
    )
    with pytest.raises(UnknownFormatError, match="no out-of-memory report"):
        open_profile(log)


def test_the_pool_of_the_driver():
    """PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync."""
    (finding,) = findings_of(
        "torch.OutOfMemoryError: Allocation on device 1 would exceed allowed memory. (out of "
        "memory)\nCurrently allocated     : 10.50 GiB\nRequested               : 20.00 MiB\n"
        "Device limit            : 11.75 GiB\nFree (according to CUDA): 0 bytes\n"
        "PyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 17179869184.00 GiB\n"
    )
    evidence = finding.evidence
    assert (evidence["allocator"], evidence["cause"]) == ("cuda:1", "full")
    assert evidence["requested_bytes"] == 20 * MIB
    assert evidence["in_use_bytes"] == round(10.5 * GIB)
    assert evidence["limit_bytes"] == evidence["capacity_bytes"] == round(11.75 * GIB)
    assert evidence["device_free_bytes"] == 0
    assert "parts" not in evidence
