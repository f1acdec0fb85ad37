"""Snapshots of PyTorch's caching allocator as tables."""

import contextlib
import copyreg
import os
import pickle
import pickletools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row

import peakline
from peakline.errors import DamagedError, InputError
from peakline.findings.memory_answer import explain_memory
from peakline.formats.common.callers import callers
from peakline.formats.common.files import SourceFile
from peakline.formats.torch_snapshot.reader import TorchSnapshotReader
from peakline.formats.torch_snapshot.trace import round_sizes
from peakline.formats.torch_snapshot.unpickle import ARGUMENT, load_plain, scanned
from peakline.kernels import pickle_layout as layout
from peakline.tables.reader import Warnings
from peakline.tables.tables import empty_columns
from peakline.wire import as_buffer

MIB = 1 << 20
A, B, C = 0x7F0000000000, 0x7F0000200000, 0x7F0000400000
TRAIN = [
    {"name": "linear", "filename": "/v/site-packages/torch/nn/functional.py", "line": 9},
    {"name": "forward", "filename": "/home/me/model.py", "line": 12},
]


def block(size, requested=None, state="active_allocated", **more):
    request = size if requested is None else requested
    return {"size": size, "requested_size": request, "state": state, "frames": [], **more}


def segment(address, *blocks, device=0, stream=0, **more):
    for place, result in enumerate(blocks):
        result.setdefault("address", address + sum(b["size"] for b in blocks[:place]))
    return {
        "device": device, "address": address, "total_size": sum(b["size"] for b in blocks),
        "stream": stream, "segment_type": "small", "blocks": list(blocks),
        **more,
    }  # fmt: skip


def entry(action, addr, size, time_us, frames=(), **more):
    return {
        "action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us,
        "frames": list(frames), **more,
    }  # fmt: skip


def alloc(addr, size, time_us, frames=()):
    return entry("alloc", addr, size, time_us, frames)


def free(addr, size, time_us):
    return [entry(f"free_{word}", addr, size, time_us) for word in ("requested", "completed")]


def snapshot(segments, *traces):
    """The segments, and what happened on each device."""
    return {"segments": segments, "device_traces": list(traces)}


@pytest.fixture
def opened(tmp_path):
    def open_snapshot(content, protocol=4):
        path = tmp_path / "snapshot.pickle"
        path.write_bytes(pickle.dumps(content, protocol))
        return peakline.open(str(path))

    return open_snapshot


def rows(profile, table, *columns):
    return [tuple(row[column] for column in columns) for row in profile.columns(table).to_pylist()]


def peaks(profile):
    answer = explain_memory(profile.columns("allocator_events"), empty_columns("steps"))
    return {peak.allocator: (peak.peak_bytes, peak.live_at_end_bytes) for peak in answer.allocators}


def test_segments_and_blocks(opened):
    profile = opened(
        {
            "segments": [
                segment(
                    A,
                    block(1024, 1000, frames=TRAIN),
                    block(512, 400, "active_awaiting_free"),
                    block(512, 7, "inactive"),
                    allocated_size=1024,
                    active_size=1536,
                    requested_size=1400,
                    segment_pool_id=(0, 0),
                    is_expandable=True,
                ),
                segment(B, block(512, state="active_pending_free"), device=1, stream=5,
                        segment_pool_id=(3, 1)),
            ]
        }
    )  # fmt: skip
    assert rows(
        profile, "segments", "allocator", "address", "total_bytes", "allocated_bytes",
        "active_bytes", "requested_bytes", "stream", "segment_type", "pool", "is_expandable",
    ) == [
        ("cuda:0", A, 2048, 1024, 1536, 1400, 0, "small", "", True),
        ("cuda:1", B, 512, 0, 512, 512, 5, "small", "3, 1", False),
    ]  # fmt: skip
    assert rows(profile, "blocks", "segment_id", "address", "bytes", "requested_bytes", "state",
                "stack_id") == [
        (0, A, 1024, 1000, "in_use", 0),
        (0, A + 1024, 512, 400, "awaiting_free", None),
        (0, A + 1536, 512, None, "free", None),
        (1, B, 512, 512, "awaiting_free", None),
    ]  # fmt: skip
    assert rows(profile, "stacks", "stack_id", "depth", "function", "line") == [
        (0, 0, "linear", 9), (0, 1, "forward", 12),
    ]  # fmt: skip
    assert profile.warnings == []


def test_an_old_snapshot_is_a_list_with_histories(opened):
    old = segment(
        A,
        {"size": 512, "state": "inactive"},
        {
            "size": 1024,
            "state": "active_allocated",
            "history": [{"addr": A, "frames": TRAIN, "real_size": 900}, {"real_size": 1}],
        },
    )
    for result in old["blocks"]:
        del result["address"]
    profile = opened([old], protocol=2)
    assert rows(profile, "blocks", "address", "bytes", "requested_bytes", "stack_id") == [
        (A, 512, None, None), (A + 512, 1024, 900, 0),
    ]  # fmt: skip
    assert rows(profile, "segments", "allocated_bytes", "requested_bytes") == [(1024, 900)]


def test_allocations_and_frees(opened):
    profile = opened(
        snapshot(
            [segment(A, block(1024, 513), block(1024, state="inactive"))],
            [
                entry("segment_alloc", A, 2048, 100),
                alloc(A, 513, 101, TRAIN),
                alloc(A + 1024, 600, 103),
                *free(A + 1024, 600, 105),
            ],
        )
    )
    assert rows(
        profile, "allocator_events", "time_ps", "sequence", "allocator", "activity", "address",
        "requested_bytes", "allocated_bytes", "op", "region_type", "stack_id", "deferred",
    ) == [
        (0, 0, "cuda:0", "expansion", A, None, 2048, None, "segment_alloc", None, None),
        (1000000, 1, "cuda:0", "allocation", A, 513, 1024, "forward model.py:12", None, 0, None),
        (3000000, 2, "cuda:0", "allocation", A + 1024, 600, 1024, None, None, None, None),
        (5000000, 3, "cuda:0", "deallocation", A + 1024, 600, 1024, None, None, None, False),
    ]  # fmt: skip
    assert peaks(profile) == {"cuda:0": (2048, 1024)}
    assert profile.duration_ps == 5000000


def test_a_free_that_waits_for_another_stream(opened):
    profile = opened(
        snapshot(
            [segment(A, block(1024, state="inactive"))],
            [
                alloc(A, 600, 1),
                entry("free_requested", A, 600, 2),
                alloc(B, 512, 3),
                entry("free_completed", A, 600, 4),
            ],
        )
    )
    assert rows(
        profile, "allocator_events", "activity", "address", "deferred", "returned_sequence"
    ) == [
        ("allocation", A, None, None),
        ("deallocation", A, True, 3),
        ("allocation", B, None, None),
    ]


def test_a_free_that_still_waits_at_the_end(opened):
    profile = opened(
        snapshot(
            [segment(A, block(1024, state="active_awaiting_free"))],
            [alloc(A, 600, 1), entry("free_requested", A, 600, 2)],
        )
    )
    assert rows(profile, "allocator_events", "deferred", "returned_sequence") == [
        (None, None), (True, None),
    ]  # fmt: skip
    assert profile.warnings == []


def test_memory_from_before_the_history(opened):
    profile = opened(
        snapshot(
            [
                # A lives on, B is freed without an allocation, C comes and stays.
                segment(A, block(4096, 4000, frames=TRAIN)),
                segment(B, block(2 * MIB, state="inactive")),
                segment(C, block(512, 100)),
            ],
            [*free(B, 2 * MIB, 7), alloc(C, 100, 9)],
        )
    )
    assert rows(profile, "allocator_events", "time_ps", "activity", "allocated_bytes", "op") == [
        (0, "allocation", 4096, "forward model.py:12"),
        (0, "allocation", 2 * MIB, "(before profile)"),
        (0, "deallocation", 2 * MIB, None),
        (2000000, "allocation", 512, None),
    ]
    assert rows(profile, "allocator_events", "is_before") == [(True,), (True,), (False,), (False,)]
    assert peaks(profile) == {"cuda:0": (2 * MIB + 4096, 4096 + 512)}


def test_random_histories_against_a_slow_replay(opened):
    for seed in range(20):
        content, before, peak = random_history(random.Random(seed))
        result = peaks(opened(content))
        live = sum(b["size"] for s in content["segments"] for b in s["blocks"]
                   if b["state"] == "active_allocated")  # fmt: skip
        assert result == ({"cuda:0": (peak, live)} if before or content["device_traces"][0] else {})


def random_history(rng):
    """A snapshot, the bytes before its history, and the peak: kept while it is made."""
    slots = [A + n * MIB for n in range(12)]
    live = {addr: 512 * rng.randint(1, 9) for addr in slots if rng.random() < 0.4}
    before = use = peak = sum(live.values())
    trace = []
    for time in range(1, rng.randint(1, 60)):
        addr = rng.choice(slots)
        if addr in live:
            size = live.pop(addr)
            trace += free(addr, size - rng.randint(0, 511), time)
            use -= size
        else:
            size = live[addr] = 512 * rng.randint(1, 9)
            trace.append(alloc(addr, size - rng.randint(0, 511), time))
            use += size
            peak = max(peak, use)
    segments = [
        segment(addr, block(live.get(addr, MIB),
                            state="active_allocated" if addr in live else "inactive"))
        for addr in slots
    ]  # fmt: skip
    return snapshot(segments, trace), before, peak


def test_a_block_that_still_lives_has_the_size_it_has(opened):
    # The rest of the segment was too small to split off.
    profile = opened(
        snapshot([segment(A, block(20 * MIB, 19 * MIB + 5))], [alloc(A, 19 * MIB + 5, 1)])
    )
    assert rows(profile, "allocator_events", "requested_bytes", "allocated_bytes") == [
        (19 * MIB + 5, 20 * MIB)
    ]


def test_a_failed_allocation(opened):
    segments = [
        segment(A, block(MIB), block(MIB // 2, state="inactive"), block(MIB // 2)),
        segment(B, block(MIB, state="inactive"), stream=3),
    ]
    oom = entry("oom", 0, 8 * MIB + 1, 30, TRAIN, device_free=77)
    del oom["addr"]
    profile = opened(snapshot(segments, [alloc(A, MIB, 10), oom]))
    assert profile.columns("oom_reports").to_pylist() == [
        {
            "report_id": 0,
            "time_ps": 20_000_000,
            "allocator": "cuda:0",
            "requested_bytes": 8 * MIB + 1,
            "rounded_bytes": 8 * MIB + 512,
            "op": "forward model.py:12",
            "device": "cuda:0",
            "data_type": None,
            "shape": None,
            "limit_bytes": None,
            "pool_bytes": 3 * MIB,
            "in_use_bytes": 3 * MIB // 2,
            "peak_bytes": None,
            "free_bytes": 3 * MIB // 2,
            # Blocks belong to a stream.
            "largest_free_bytes": MIB // 2,
            "fragmentation": pytest.approx(2 / 3),
            "device_free_bytes": 77,
            "capacity_bytes": None,
            "kind": None,
            "source": None,
            "message": None,
            "is_complete": True,
        }
    ]


def test_a_failure_before_the_end_is_told_as_it_was(opened):
    profile = opened(
        snapshot(
            [segment(A, block(MIB))],
            [
                entry("oom", 0, 3 * MIB, 5, device_free=9),
                entry("segment_alloc", A, MIB, 6),
                alloc(A, MIB, 7),
            ],
        )
    )
    assert rows(
        profile, "oom_reports", "pool_bytes", "in_use_bytes", "free_bytes", "largest_free_bytes"
    ) == [(0, 0, 0, None)]


def test_sizes_that_no_memory_has_do_not_end_the_reading(opened):
    history = [alloc(A, 2**63 - 1, 1), alloc(B, 2 * MIB, 2), entry("oom", 0, MIB, 3)]
    profile = opened(snapshot([segment(C, block(8 * MIB, state="inactive"))], history))
    assert rows(profile, "oom_reports", "requested_bytes", "free_bytes") == [(MIB, 2**63 - 1)]


def test_failures_of_several_devices_and_streams_are_in_order_of_time(opened):
    free = [
        segment(A, block(MIB, state="inactive"), block(2 * MIB, state="inactive"), stream=5),
        segment(B, block(4 * MIB, state="inactive"), stream=2),
        segment(C, block(8 * MIB, state="inactive"), stream=5, device=1),
    ]
    oom = [entry("oom", 0, n * MIB, 10 * n) | {"stream": n} for n in (1, 5, 2, 5)]
    profile = opened(snapshot(free, [oom[0], oom[2]], [oom[1], oom[3]]))
    columns = "report_id", "time_ps", "device", "requested_bytes", "largest_free_bytes"
    assert rows(profile, "oom_reports", *columns) == [
        (0, 0, "cuda:0", MIB, 0),
        (1, 10**7, "cuda:0", 2 * MIB, 4 * MIB),
        (2, 4 * 10**7, "cuda:1", 5 * MIB, 8 * MIB),
        (3, 4 * 10**7, "cuda:1", 5 * MIB, 8 * MIB),
    ]


def test_more_devices_than_any_process_has_are_refused(opened):
    many = [segment(A, block(MIB), device=device) for device in range(1025)]
    with pytest.raises(InputError, match="1,025 devices, 1,024 at most are read"):
        opened(snapshot(many))
    assert len(opened(snapshot(many[1:])).columns("segments").to_pylist()) == 1024


def test_segments_come_and_go(opened):
    actions = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
    profile = opened(
        snapshot([], [entry(action, A, 2 * MIB, n) for n, action in enumerate(actions, 1)])
    )
    assert rows(profile, "allocator_events", "activity", "region_type") == [
        ("expansion", action) for action in actions
    ]


def test_two_devices_on_one_clock(opened):
    profile = opened(
        snapshot(
            [segment(A, block(512)), segment(A, block(512), device=1)],
            [alloc(A, 1, 20)],
            [alloc(A, 1, 10), alloc(B, 1, 30)],
            [],
        )
    )
    assert rows(profile, "allocator_events", "time_ps", "sequence", "allocator") == [
        (0, 0, "cuda:1"), (10_000_000, 1, "cuda:0"), (20_000_000, 2, "cuda:1"),
    ]  # fmt: skip


def test_pinned_host_memory(opened):
    profile = opened(
        {
            "segments": [],
            "device_traces": [],
            "host_segments": [segment(A, block(512))],
            "host_traces": [alloc(A, 512, 3)],
        }
    )
    assert rows(profile, "segments", "allocator") == [("host",)]
    assert peaks(profile) == {"host": (512, 512)}


def test_a_history_without_times_is_numbered(opened):
    trace = [alloc(A, 1, 1), alloc(B, 1, 1)]
    for result in trace:
        del result["time_us"]
    profile = opened(snapshot([], trace))
    assert rows(profile, "allocator_events", "time_ps") == [(0,), (1,)]
    assert [(w.kind, w.count) for w in profile.warnings] == [
        ("no_times", 2),
        ("history_mismatch", 2),
    ]


def test_the_clock_never_goes_backwards(opened):
    trace = [alloc(A, 1, 10), alloc(B, 1, 8), alloc(C, 1, 11)]
    profile = opened(snapshot([], trace))
    assert rows(profile, "allocator_events", "time_ps") == [(0,), (0,), (1_000_000,)]
    assert ("times_out_of_order", 1) in [(w.kind, w.count) for w in profile.warnings]


def test_what_is_not_understood_is_counted(opened):
    resting = segment(A, block(512, state="resting")) | {"total_size": 600}
    segments = [resting, segment(B, block(512, state="inactive"))]
    profile = opened(snapshot(segments, [entry("dream", A, 1, 1), alloc(B, 5, 2)]))
    profile.columns("blocks")
    assert [(w.kind, w.count) for w in profile.warnings] == [
        ("unknown_states", 1),
        ("segment_mismatch", 1),
        ("unknown_actions", 1),
        ("history_mismatch", 1),
    ]


def test_half_a_character_is_shown_as_such(opened):
    frames = [{"name": "f\ud800", "filename": "\udfff.py", "line": 3}]
    whole = segment(A, block(512), segment_type="\ud800")
    profile = opened(snapshot([whole], [alloc(A, 512, 1, frames)]))
    (row,) = profile.sql("select function, file from stacks").to_pylist()
    assert row == {"function": "f\ufffd", "file": "\ufffd.py"}
    (row,) = profile.sql("select segment_type from segments").to_pylist()
    assert row == {"segment_type": "\ufffd"}


def test_an_empty_snapshot(opened):
    profile = opened(snapshot([]))
    for table in ("segments", "blocks", "stacks", "allocator_events", "oom_reports"):
        assert profile.columns(table).rows == 0
    assert profile.duration_ps == 0


@each_row("protocol", range(6))
def test_every_protocol(tmp_path, protocol):
    content = snapshot([segment(A, block(512))], [alloc(A, 1, 1)])
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content, protocol))
    reader = TorchSnapshotReader(SourceFile(str(path)))
    assert reader.read("allocator_events", Warnings()).array("allocated_bytes").tolist() == [512]


@each_row(
    ("content", "reason"),
    [
        ({"weights": [1], "epoch": 3}, "a dict with weights, epoch"),
        ([{"loss": 1}], "a list of dicts with loss"),
        ({"segments": 5}, "'segments' is no list of dicts"),
        (
            {"segments": [segment(A, block(512)) | {"address": "here"}]},
            "'address' is no 64-bit number",
        ),
        ({"segments": [{**segment(A), "blocks": [{"state": "inactive"}]}]}, "'size' is missing"),
        ({"device_traces": [[{"action": ["alloc"]}]]}, "an action is no text"),
        ({"device_traces": [[alloc(A, 1 << 70, 1)]]}, "'size' is no 64-bit number"),
    ],
)
def test_a_pickle_of_something_else(opened, content, reason):
    with pytest.raises(InputError, match="no memory snapshot of PyTorch") as error:
        opened(content)
    assert str(error.value).endswith(reason)


def test_shared_lists_do_not_multiply(opened):
    trace = [alloc(A, 1, 1)] * 500
    with pytest.raises(InputError, match="share their entries"):
        opened({"segments": [], "device_traces": [trace] * 500})
    shared = [block(512)] * 500
    with pytest.raises(InputError, match="share their blocks"):
        opened({"segments": [{**segment(A), "blocks": shared}] * 500})


BACKWARD_THREAD = [
    {"name": name, "filename": "??", "line": 0}
    for name in (
        "torch::unwind::unwind()",
        "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)",
        "at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>, c10::Allocator*)",
        "at::_ops::empty_strided::call(c10::ArrayRef<c10::SymInt>)",
        "at::_ops::div_Tensor::call(at::Tensor const&, at::Tensor const&)",
        "at::native::div(at::Tensor const&, c10::Scalar const&)",
        "torch::autograd::generated::MeanBackward0::apply(std::vector<at::Tensor>&&)",
        "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)",
        "__clone3",
    )
]


@each_row(
    ("frames", "name"),
    [
        (TRAIN, "forward model.py:12"),
        (TRAIN[:1], "linear functional.py:9"),
        ([{"name": "c10::alloc", "filename": "a.cpp", "line": 3}, *TRAIN], "forward model.py:12"),
        ([{"name": "c10::alloc", "filename": "a.cpp", "line": 3}], None),
        ([{"name": "nccl::alloc", "filename": "a.cpp", "line": 3}], "nccl::alloc a.cpp:3"),
        # The thread of a backward pass has no Python: the node, else the op, never the machinery.
        (BACKWARD_THREAD, "MeanBackward0"),
        (BACKWARD_THREAD[:6], "aten::div"),
        (BACKWARD_THREAD[:4], None),
        ([*BACKWARD_THREAD[:6], *TRAIN], "forward model.py:12"),
        (
            [
                {
                    "name": "torch::autograd::CppNode<ops::Swish>::apply(int)",
                    "filename": "??",
                    "line": 0,
                }
            ],
            "Swish",
        ),
        ([{"name": "f", "filename": "D:\\x\\train.py", "line": 1}], "f train.py:1"),
        ([{"name": "f", "filename": "", "line": 0}], "f"),
        ([], None),
    ],
)
def test_who_called(frames, name):
    every = [(f["name"], f["filename"], f["line"]) for f in frames]
    assert callers(np.array([0, len(every)]), np.arange(len(every)), every) == [name]


def slow_round(size, divisions):
    """The rule as it is told: steps between powers of two, else multiples of 512."""
    if size == 0:
        return 0
    steps = divisions.get(str(1 << min(max(size.bit_length() - 21, 0), 15)), 0)
    if steps > 1 and size > 512 * steps:
        floor = 1 << (size.bit_length() - 1)
        step = floor // steps
        return -(-size // step) * step if step else 2 * floor
    return -(-size // 512) * 512


@each_row("divisions", [{}, {"1": 4, "2": 8, "64": 3}])
def test_rounding(divisions):
    sizes = [0, 1, 511, 512, 513, 1200, 2048, 2049, 5000, MIB - 1, MIB, MIB + 1, 3 * MIB + 7,
             64 * MIB + 1, 100 * MIB, (1 << 33) + 5, 1 << 40]  # fmt: skip
    result = round_sizes(np.array(sizes, np.int64), divisions)
    assert result.tolist() == [slow_round(size, divisions) for size in sizes]


def test_rounding_example_of_the_documentation():
    assert round_sizes(np.array([1200]), {"1": 4}).tolist() == [1536]
    assert round_sizes(np.array([2200]), {"1": 4}).tolist() == [2560]


CONTENT = {"segments": [{"address": 1 << 47, "pool": (0, 0), "x": [1.5, None, True, "é", "x"]}]}


FILE = SourceFile(__file__)


@pytest.fixture
def load():
    return lambda data: load_plain(FILE.translated(data))


class Code:
    def __reduce__(self):
        return os.system, ("exit 1",)


@each_row("protocol", range(6))
def test_plain_containers(load, protocol):
    assert load(pickle.dumps(CONTENT, protocol)) == (CONTENT, 0)


@each_row("protocol", range(6))
def test_code_is_refused_by_name(load, protocol):
    with pytest.raises(InputError, match=r"needs (posix|nt)\.system: refused"):
        load(pickle.dumps({"segments": [Code()]}, protocol))


@each_row(
    ("data", "wanted"),
    [
        (b"cos\nsystem\n.", "os.system"),
        (b"(S'x'\nios\nsystem\n.", "os.system"),
        (b"Pabc\n.", "a persistent object abc"),
        (b"\x80\x02K\x01Q.", "a persistent object"),
        (b"\x80\x02\x82\x05.", "extension code 5"),
        (b"\x80\x05\x97.", "a buffer that is not in the file"),
        (b"\x80\x05C\x01x\x98.", "a buffer that is not in the file"),
        (b"\x80\x02N)R.", "an object to be built, at byte 4"),
        (b"\x80\x02N}b.", "an object to be built, at byte 4"),
    ],
)
def test_what_is_refused(load, data, wanted):
    with pytest.raises(InputError) as error:
        load(data)
    assert f"needs {wanted}: refused" in str(error.value)


def test_an_extension_code_is_no_way_around(load):
    copyreg.add_extension("os", "system", 77)
    try:
        # The standard unpickler remembers what a code stood for, and asks nobody again.
        assert pickle.loads(b"\x80\x02\x82M.") is os.system  # noqa: S301
        with pytest.raises(InputError, match=r"needs os\.system: refused"):
            load(b"\x80\x02\x82M.")
    finally:
        copyreg.remove_extension("os", "system", 77)
        copyreg.clear_extension_cache()


@each_row(
    "data",
    [
        b"\x80\x02K\x01r\xff\xff\xff\x7f.",  # an array of 16 GiB for one value
        b"K\x01p2147483647\n.",
        b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s.",  # hashing recurses
        b"\x80\x02})" + b"\x85" * 100_000 + b"q\x000(h\x00K\x01u.",
        b"\x80\x04\x8f(]\x90.",
        pickle.dumps({1 << 64: None}, 4),  # as many as one likes have the same hash
        pickle.dumps({1 << 70: None}, 0),
        pickle.dumps({-1 << 70}, 4),
        b"\x80\x02h\x05.",
        b"g7\n.",
        b"gx\n.",
        b"a.",
        b"0.",
        b"\x80\x02]q\x00h\x00.",
        b"(K\x01.",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
        b"\xfe.",
        b"I" + b"9" * 10000 + b"\n.",
        b"Lx\n.",
        b"F1.5x\n.",
        b"\x80\x09K\x01.",
    ],
)
def test_damage_is_one_line(load, data):
    with pytest.raises(DamagedError, match="the pickle is damaged") as error:
        load(data)
    assert "\n" not in str(error.value)


@each_row(
    "data",
    [
        b"\x80\x02]",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"V never ends",
        b"\x80",
    ],
)
def test_a_cut_is_one_line(load, data):
    with pytest.raises(DamagedError, match="the pickle is cut off at byte"):
        load(data)


@each_row("protocol", [0, 2, 4])
def test_numbers_of_64_bits_may_be_keys_and_others_values(load, protocol):
    content = {(1 << 64) - 1: 1 << 80, -(1 << 63): -1 << 99}
    assert load(pickle.dumps(content, protocol))[0] == content


def test_every_cut_is_told(load):
    data = pickle.dumps(CONTENT, 4)
    for end in range(1, len(data)):
        with pytest.raises(DamagedError, match="is cut off"):
            load(data[:end])


def test_bytes_after_the_end_are_counted(load):
    assert load(pickle.dumps(5, 4) + b"more")[1] == 4


def test_deep_nesting_is_no_problem(load):
    content, _ = load(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    assert isinstance(content, list)


def test_the_opcodes_are_those_of_the_library():
    for opcode in pickletools.opcodes:
        assert ARGUMENT[ord(opcode.code)] != layout.A_NO_OPCODE
    assert (ARGUMENT != layout.A_NO_OPCODE).sum() == len(pickletools.opcodes)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 80), 1 << 80) | st.floats(allow_nan=False)
    | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)  # fmt: skip


@given(content=plain, protocol=st.integers(0, 5), python=st.booleans())
def test_every_plain_pickle_passes_the_scan(content, protocol, python):
    data = pickle._dumps(content, protocol) if python else pickle.dumps(content, protocol)
    if protocol < 3 and (b"_codecs\nencode" in data or b"__builtin__\nbytes" in data):
        # Bytes are code before protocol 3.
        assert scanned(as_buffer(data))[0] == layout.S_NAME
    else:
        assert scanned(as_buffer(data)) == (layout.S_WHOLE, len(data))


@given(data=st.binary(max_size=60), cut=st.integers(0, 60), flip=st.binary(max_size=8))
def test_no_bytes_are_too_strange(data, cut, flip):
    whole = pickle.dumps(CONTENT, 4)
    for candidate in (data, whole[:cut] + flip + whole[cut + len(flip) :], data + b"."):
        if candidate:
            with contextlib.suppress(InputError):
                load_plain(FILE.translated(candidate))
