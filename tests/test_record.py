import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import peakline
from peakline import schema
from peakline.errors import OutputError, UsageError
from peakline.record import MemoryLog, Tensor
from tests.each_row import each_row

NS = 1_505_568_268_422_108_000
MATMUL = Tensor("float", (513344, 1), "GPU_0_bfc", 2053376, 2053376, 362, 140432860795136, True)  # noqa: FBT003


def written(write, *, text):
    stream = io.BytesIO()
    with MemoryLog(stream, text=text) as log:
        write(log)
    return stream.getvalue()


def every_message(log):
    log.record_step(2, "x:0->loss:0/train/0/;1", time_ns=NS)
    log.record_tensor_allocation("a/b", 8, MATMUL, time_ns=NS)
    log.record_tensor_deallocation(1, "cpu", time_ns=NS)
    log.record_tensor_output("a/b", 8, 1, Tensor("int32", (), "cpu", 4), time_ns=NS)
    log.record_raw_allocation("scratch", -3, 4096, 64, 7, "gpu", time_ns=NS)
    log.record_raw_deallocation("scratch", -3, 7, "gpu", deferred=True, time_ns=NS)


def test_text_is_what_tensorflow_prints():
    prefix = "2017-09-16 13:24:28.422108: I peakline] __LOG_MEMORY__ "
    lines = [
        'MemoryLogStep { step_id: 2 handle: "x:0->loss:0/train/0/;1" }',
        (
            'MemoryLogTensorAllocation { step_id: 8 kernel_name: "a/b" tensor { dtype: DT_FLOAT '
            "shape { dim { size: 513344 } dim { size: 1 } } allocation_description { "
            'requested_bytes: 2053376 allocated_bytes: 2053376 allocator_name: "GPU_0_bfc" '
            "allocation_id: 362 has_single_reference: true ptr: 140432860795136 } } }"
        ),
        'MemoryLogTensorDeallocation { allocation_id: 1 allocator_name: "cpu" }',
        (
            'MemoryLogTensorOutput { step_id: 8 kernel_name: "a/b" index: 1 tensor { '
            "dtype: DT_INT32 shape { } allocation_description { "
            'requested_bytes: 4 allocator_name: "cpu" } } }'
        ),
        (
            'MemoryLogRawAllocation { step_id: -3 operation: "scratch" num_bytes: 4096 ptr: 64 '
            'allocation_id: 7 allocator_name: "gpu" }'
        ),
        (
            'MemoryLogRawDeallocation { step_id: -3 operation: "scratch" allocation_id: 7 '
            'allocator_name: "gpu" deferred: true }'
        ),
    ]
    expected = "".join(f"{prefix}{line}\n" for line in lines)
    assert written(every_message, text=True).decode() == expected


def test_binary_is_one_message_however_it_is_cut():
    data = written(every_message, text=False)
    log = schema.MemoryLog.FromString(data)
    assert [record.WhichOneof("record") for record in log.record] == [
        "step", "tensor_allocation", "tensor_deallocation", "tensor_output", "raw_allocation",
        "raw_deallocation",
    ]  # fmt: skip
    assert {record.time_ns for record in log.record} == {NS}
    assert {record.thread_id for record in log.record} == {threading.get_native_id()}
    assert schema.MemoryLog.FromString(data + data).record[6:] == log.record[:]


def test_a_message_of_defaults_is_still_there():
    def write(log):
        log.record_tensor_deallocation(0, "", time_ns=0, thread_id=0)

    assert written(write, text=False) == b"\x0a\x02\x2a\x00"
    line = b"I peakline] __LOG_MEMORY__ MemoryLogTensorDeallocation {  }\n"
    assert written(write, text=True) == line


def test_a_name_stays_on_its_line():
    def write(log):
        log.record_step(1, 'a\n"é', time_ns=0)

    line = rb'I peakline] __LOG_MEMORY__ MemoryLogStep { step_id: 1 handle: "a\n\"\303\251" }'
    assert written(write, text=True) == line + b"\n"


def test_a_shape_of_unknown_rank_and_a_number_as_data_type():
    tensor = Tensor(1, None, "cpu", 4).description()
    assert tensor.shape.unknown_rank
    assert tensor.dtype == 1
    assert Tensor("DT_HALF", [-1], "cpu", 4).description().dtype == 19


def test_a_file_is_created_anew_or_appended_to(tmp_path):
    path = tmp_path / "log"

    def add(number, **how):
        with MemoryLog(path, **how) as log:
            log.record_tensor_deallocation(number, "cpu")

    add(1)
    add(2)
    add(3, append=True)
    log = schema.MemoryLog.FromString(path.read_bytes())
    assert [record.tensor_deallocation.allocation_id for record in log.record] == [2, 3]


def test_a_record_is_in_the_file_at_once(tmp_path):
    path = tmp_path / "log"
    with MemoryLog(path, text=True) as log:
        log.record_step(1, "a")
        assert path.read_bytes().endswith(b'handle: "a" }\n')


def test_a_stream_of_characters_takes_text_and_stays_open():
    stream = io.StringIO()
    with MemoryLog(stream, text=True) as log:
        log.record_step(1, "a", time_ns=0)
    assert stream.getvalue().startswith("I peakline] ")
    with pytest.raises(UsageError, match="needs a stream of bytes"):
        MemoryLog(stream)


class _Trickle(io.RawIOBase):
    """Takes three bytes at a time."""

    def __init__(self):
        super().__init__()
        self.taken = b""

    def write(self, data):
        part = bytes(data[:3])
        self.taken += part
        return len(part)


def test_a_stream_that_takes_parts_gets_everything():
    stream = _Trickle()
    MemoryLog(stream).record_step(1, "x:0->loss:0", time_ns=0, thread_id=0)
    assert schema.MemoryLog.FromString(stream.taken).record[0].step.handle == "x:0->loss:0"


def test_threads_write_whole_records(tmp_path):
    path = tmp_path / "log"
    with MemoryLog(path, text=True) as log:

        def work(number):
            for _ in range(200):
                log.record_step(number, f"{number}" * 50, time_ns=0)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = path.read_text().splitlines()
    whole = {
        f'I peakline] __LOG_MEMORY__ MemoryLogStep {{ step_id: {n} handle: "{f"{n}" * 50}" }}'
        for n in range(1, 5)
    }
    assert len(lines) == 800
    assert set(lines) == whole


@each_row(
    ("call", "message"),
    [
        (lambda log: log.record_step("1", "a"), "step: "),
        (lambda log: log.record_step(2**63, "a"), "step: "),
        (lambda log: log.record_step(1, "a", time_ns=-1), "time_ns is -1"),
        (lambda log: log.record_tensor_allocation("a", 1, Tensor("floot", (), "c", 1)), "'floot'"),
    ],
)
def test_a_wrong_argument_writes_nothing(call, message):
    stream = io.BytesIO()
    log = MemoryLog(stream, text=True)
    with pytest.raises(UsageError, match=message):
        call(log)
    assert stream.getvalue() == b""


def test_a_closed_log_takes_nothing(tmp_path):
    log = MemoryLog(tmp_path / "log")
    log.close()
    log.close()
    with pytest.raises(UsageError, match="closed"):
        log.record_step(1, "a")


def test_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"):
        MemoryLog(tmp_path / "no" / "log")


_I64 = st.integers(-(2**63), 2**63 - 1)
_U64 = st.integers(0, 2**64 - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_TENSOR = st.builds(
    Tensor,
    st.integers(0, 30),
    st.none() | st.lists(_I64, max_size=3),
    _TEXT,
    _I64,
    _I64,
    _I64,
    _U64,
    st.booleans(),
)
_WHEN = st.fixed_dictionaries(
    {"time_ns": st.just(0) | st.integers(10**15, 2 * 10**15).map(lambda us: us * 1000)}
)
_CALLS = st.one_of(
    st.tuples(st.just("step"), st.tuples(_I64, _TEXT), _WHEN),
    st.tuples(st.just("tensor_allocation"), st.tuples(_TEXT, _I64, _TENSOR), _WHEN),
    st.tuples(st.just("tensor_deallocation"), st.tuples(_I64, _TEXT), _WHEN),
    st.tuples(
        st.just("tensor_output"),
        st.tuples(_TEXT, _I64, st.integers(-(2**31), 2**31 - 1), _TENSOR),
        _WHEN,
    ),
    st.tuples(st.just("raw_allocation"), st.tuples(_TEXT, _I64, _I64, _U64, _I64, _TEXT), _WHEN),
    st.tuples(
        st.just("raw_deallocation"),
        st.tuples(_TEXT, _I64, _I64, _TEXT),
        st.builds(lambda when, deferred: when | {"deferred": deferred}, _WHEN, st.booleans()),
    ),
)


@settings(max_examples=60)
@given(calls=st.lists(_CALLS, min_size=1, max_size=12))
def test_both_forms_read_alike(tmp_path_factory, calls):
    folder = tmp_path_factory.getbasetemp()
    answers = []
    for text in (False, True):
        path = folder / f"round-trip-{text}"
        with MemoryLog(path, text=text) as log:
            # So that the first bytes of the binary form tell what it is.
            log.record_step(1, "first", time_ns=10**18, thread_id=1)
            for kind, arguments, more in calls:
                getattr(log, f"record_{kind}")(*arguments, thread_id=0, **more)
        with peakline.open(str(path)) as profile:
            tables = ("log_records", "allocator_events", "tensor_outputs", "steps")
            result = [profile.columns(name).to_pylist() for name in tables]
        # The text form does not keep the thread.
        result[0] = [row | {"thread": None} for row in result[0]]
        answers.append(result)
    assert answers[0] == answers[1]
    kinds = [record["message"] for record in answers[0][0][1:]]
    assert [kind.removeprefix("MemoryLog") for kind in kinds] == [
        "".join(word.capitalize() for word in kind.split("_")) for kind, _, _ in calls
    ]


FULL = """
import resource, sys
from peakline.errors import OutputError
from peakline.record import MemoryLog

with MemoryLog(sys.argv[1], text=sys.argv[2] == "text") as log:
    log.record_step(1, "first", time_ns=0)
    room = len(open(sys.argv[1], "rb").read()) + 5
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        log.record_step(2, "second", time_ns=0)
    except OutputError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.record_step(3, "third", time_ns=0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limit of a file's size")
@pytest.mark.parametrize("form", ["text", "binary"])
def test_a_file_without_room_ends_with_a_whole_record(tmp_path, form):
    path = tmp_path / "log"
    words = [sys.executable, "-c", FULL, str(path), form]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert run.stdout == "a record cannot be written: File too large\n"
    both = io.BytesIO()
    with MemoryLog(both, text=form == "text") as log:
        log.record_step(1, "first", time_ns=0)
        log.record_step(3, "third", time_ns=0)
    if form == "text":
        assert path.read_bytes() == both.getvalue()
    else:
        steps = [r.step for r in schema.MemoryLog.FromString(path.read_bytes()).record]
        assert [(s.step_id, s.handle) for s in steps] == [(1, "first"), (3, "third")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_device_is_an_error_of_the_output():
    with MemoryLog("/dev/full") as log, pytest.raises(OutputError, match="No space left"):
        log.record_step(1, "")
