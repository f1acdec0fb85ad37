"""Records of a memory log among lines of text, in the log's binary form."""

import datetime as dt
import gzip
import random
import re

import pytest
from google.protobuf import text_format
from tests.each_row import each_row
from tests.wire.parts import Fence

from peakline import schema
from peakline.schema import MemoryLog
from peakline.wire import log_lines
from peakline.wire.log_lines import LogCounts, MemoryLogScanner

RECORD = '__LOG_MEMORY__ MemoryLogTensorDeallocation { allocation_id: 7 allocator_name: "cpu" }'
FENCE = Fence()
ABSL = "I0000 00:00:1795194000.088408   10967 log_memory.cc:34] "
MEMBERS = {
    field.message_type.name: field.name
    for field in schema.descriptor("peakline.MemoryLogRecord").oneofs_by_name["record"].fields
}


def scan(text, block=1 << 20):
    """The records in ``text``, fed in blocks, and the counts."""
    data = text.encode() if isinstance(text, str) else text
    scanner, out = MemoryLogScanner(), b""
    for start in range(0, len(data), block):
        out += scanner.feed(data[start : start + block]).tobytes()
    out += scanner.finish().tobytes()
    return MemoryLog.FromString(out).record, scanner.counts


def ns(*moment, nanoseconds=0):
    """Nanoseconds since the epoch of a moment in UTC."""
    return int(dt.datetime(*moment, tzinfo=dt.UTC).timestamp()) * 10**9 + nanoseconds


@each_row(
    ("prefix", "time", "thread"),
    [
        (ABSL, 1795194000_088408000, 10967),
        ("I0000 00:00:1795194000.088408 1 log_memory.cc:34] ", 1795194000_088408000, 1),
        # Year-less dates: nanoseconds of the year, which is taken for a leap year.
        ("I0101 00:00:01.5 77 log_memory.cc:34] ", 1_500000000, 77),
        ("W0301 12:34:56.789012 77 log_memory.cc:34] ",
         (60 * 86400 + 45296) * 10**9 + 789012000, 77),
        ("I1231 23:59:59.000001 77 a.cc:34] ", (366 * 86400 - 1) * 10**9 + 1000, 77),
        ("I20260623 12:34:56.789012 10967 log_memory.cc:34] ",
         ns(2026, 6, 23, 12, 34, 56, nanoseconds=789012000), 10967),
        ("2017-09-16 13:24:28.422108: I tensorflow/core/framework/log_memory.cc:35] ",
         ns(2017, 9, 16, 13, 24, 28, nanoseconds=422108000), 0),
        ("2000-02-29 00:00:00: I tensorflow/core/framework/log_memory.cc:35] ",
         ns(2000, 2, 29), 0),
        ("I tensorflow/core/framework/log_memory.cc:35] ", 0, 0),
        ("I 5143420588.000000 file tensorflow/core/framework/log_memory.cc:41] ",
         5143420588 * 10**9, 0),
        ("", 0, 0),
        ("  ", 0, 0),
        ("13:24:28.5: I a.cc:1] ", (13 * 3600 + 24 * 60 + 28) * 10**9 + 500000000, 0),
        # What others put before it does not hide the line's own time ...
        ("2026-11-20T17:04:52.123456789Z stderr F " + ABSL, 1795194000_088408000, 10967),
        ("worker-1  | 2017-09-16 13:24:28: I a.cc:35] ", ns(2017, 9, 16, 13, 24, 28), 0),
        ("[1,0]<stderr>:2017-09-16 13:24:28: I a.cc:35] ", ns(2017, 9, 16, 13, 24, 28), 0),
        ("[default0]:" + ABSL, 1795194000_088408000, 10967),
        ("(worker pid=123) 2019-01-01 01:02:03,5 " + ABSL, 1795194000_088408000, 10967),
        # ... and is the time where the line has none.
        ("2026-11-20T17:04:52.123456789Z stderr F I a.cc:35] ",
         ns(2026, 11, 20, 17, 4, 52, nanoseconds=123456789), 0),
        ("2026-11-20T17:04:52+02:30 I a.cc:35] ", ns(2026, 11, 20, 14, 34, 52), 0),
        ("[2026/11/20 17:04:52] I a.cc:35] ", ns(2026, 11, 20, 17, 4, 52), 0),
        # A word that is shorter than a date, at the very beginning.
        ("16 13:24:28: I x] ", (13 * 3600 + 24 * 60 + 28) * 10**9, 0),
        # No times, or no dates.
        ("9999-12-31 23:59:59: I a.cc:1] ", 0, 0),
        ("2017-13-01T13:24:28Z I a.cc:1] ", (13 * 3600 + 24 * 60 + 28) * 10**9, 0),
        ("I0000 00:00:99999999999999999999.5 7 a.cc:34] ", 0, 0),
        ("25:00:00 12:61:00 a.cc:34] ", 0, 0),
        ("std::vector<int>::at a::b::c::d ", 0, 0),
    ],
)  # fmt: skip
def test_time_and_thread_come_from_the_prefix(prefix, time, thread):
    (record,), counts = scan(prefix + RECORD + "\n")
    assert (record.time_ns, record.thread_id) == (time, thread)
    assert record.tensor_deallocation.allocation_id == 7
    assert (counts.records, counts.with_time) == (1, int(time != 0))
    # The same right before memory that may not be touched.
    data = (prefix + RECORD).encode()
    for text in (data, data + b"\n"):
        scanner = MemoryLogScanner()
        scanner.feed(FENCE.hold(text))
        scanner.finish()
        assert scanner.counts == counts


def test_times_without_a_year_are_counted():
    _, counts = scan(f"I0301 12:34:56.7 7 a.cc:1] {RECORD}\n12:34:56: {RECORD}\n{ABSL}{RECORD}\n")
    assert (counts.with_time, counts.undated) == (3, 2)


def test_the_previous_record_on_a_line_gives_no_time():
    records, counts = scan(f"{ABSL}{RECORD} {RECORD}\n{RECORD}\n")
    assert [record.time_ns > 0 for record in records] == [True, False, False]
    assert counts == LogCounts(records=3, with_time=1)


@each_row("marker", ["", "goo.gle/debugstr  ", "goo.gle/debugproto    "])
@each_row("name", MEMBERS)
def test_every_message(name, marker):
    records, counts = scan(f"{ABSL}__LOG_MEMORY__ {name} {{ {marker}}}\n")
    assert [record.WhichOneof("record") for record in records] == [MEMBERS[name]]
    assert counts == LogCounts(records=1, with_time=1)


@each_row(
    ("text", "counts"),
    [
        ("", {}),
        ("nothing\n\n", {}),
        (f"{RECORD}\r\n{RECORD}\r\n", {"records": 2}),
        (RECORD, {"records": 1}),
        (f"{RECORD}__LOG_MEMORY__", {"records": 1, "cut": 1}),
        (f"{RECORD[:-1]}\n{RECORD}\n", {"records": 1, "cut": 1}),
        (f"{RECORD[:-1]}\n}}\n", {"cut": 1}),
        (f"{RECORD[:-9]}\n", {"cut": 1}),
        (f"{RECORD[:-9]}", {"cut": 1}),
        (f"{RECORD[:50]}{ABSL}{RECORD}\n", {"records": 1, "with_time": 1, "cut": 1}),
        (f"{RECORD[:-5]}{ABSL}{RECORD}\n", {"records": 1, "with_time": 1, "cut": 1}),
        ("__LOG_MEMORY__\n", {"cut": 1}),
        ("__LOG_MEMORY__ MemoryLogSt\n", {"cut": 1}),
        ("__LOG_MEMORY__ MemoryLogStep\n{ }\n", {"cut": 1}),
        ("__LOG_MEMORY__ is a token\n", {"malformed": 1}),
        ("__LOG_MEMORY__ step { step_id: 1 }\n", {"malformed": 1}),
        ("__LOG_MEMORY__ MemoryLogStep { step_id: x }\n", {"malformed": 1}),
        ("__LOG_MEMORY__ MemoryLogStep { step_id: 1 } }\n", {"records": 1}),
        ("__LOG_MEMORY__ MemoryLogStep < step_id: 1 >\n", {"records": 1}),
        ("__LOG_MEMORY__ MemoryLogStep { step_id: 1 step_id: 1 }\n", {"malformed": 1}),
        ("__LOG_MEMORY__ MemoryLogStep { # }\n", {"cut": 1}),
        ("__LOG_MEMORY__ MemoryLogNew { a: 1 }\n", {"unknown_messages": 1}),
        ("__LOG_MEMORY__ MemoryLogStep { handle: [REDACTED] }\n", {"records": 1, "redacted": 1}),
        ("__LOG_MEMORY__ MemoryLogStep { a { b: 1 } c: 'd' }\n",
         {"records": 1, "unknown_fields": 2, "first_unknown_field": "a"}),
        ("__LOG_MEMORY__ MemoryLogStep { a: 1 handle: [REDACTED] step_id: x }\n",
         {"malformed": 1}),
        (f"_LOG_MEMORY__ __LOG_MEMOR __LOG_MEMORY___{RECORD}\n", {"records": 1, "cut": 1}),
        (f"___{RECORD}\n", {"records": 1}),
    ],
)  # fmt: skip
def test_what_is_found_and_counted(text, counts):
    records, result = scan(text)
    assert result == LogCounts(**counts)
    assert len(records) == result.records


def expected_records(text):
    """The records of a log as the reference reads them, line by line."""
    records = []
    for line in text.decode().split("\n"):
        result = re.search(r"__LOG_MEMORY__ (\w+) \{ (?:goo\.gle/debug\w+\s+)?(.*)\}\s*$", line)
        if result is not None:
            record = schema.MemoryLogRecord()
            text_format.Parse(result[2], getattr(record, MEMBERS[result[1]]))
            getattr(record, MEMBERS[result[1]]).SetInParent()
            prefix = re.match(r"I0000 00:00:(\d+)\.(\d{6}) +(\d+) ", line)
            record.time_ns = int(prefix[1] + prefix[2]) * 1000
            record.thread_id = int(prefix[3])
            records.append(record)
    return records


@pytest.fixture(scope="module")
def real_log(root):
    return gzip.decompress((root / "tests/data/memory_log/tf1_control_flow.log.gz").read_bytes())


def test_a_real_log_line_by_line(real_log):
    records, counts = scan(real_log)
    assert list(records) == expected_records(real_log)
    assert {record.WhichOneof("record") for record in records} == set(MEMBERS.values())
    assert counts == LogCounts(records=len(records), with_time=len(records))


@each_row("block", [1, 7, 100, 1000, 4097])
def test_blocks_of_any_size(real_log, block):
    text = real_log[:20_000]
    assert scan(text, block) == scan(text)


def test_a_line_that_is_too_long_is_given_up_wherever_blocks_end(monkeypatch):
    monkeypatch.setattr(log_lines, "MOST_LINE_BYTES", 1000)
    fits = "x" * (999 - len(RECORD)) + RECORD + "\n"
    text = fits + "x" + fits + fits + "y" * 5000 + RECORD + "\n" + RECORD
    for block in (1, 64, 333, 999, 1000, 1001, 2500, 100_000):
        _, counts = scan(text, block)
        assert counts == LogCounts(records=3, too_long=2), block


def test_memory_for_a_line_without_an_end_is_bounded():
    scanner = MemoryLogScanner()
    for _ in range(40):
        scanner.feed(b"x" * (1 << 20))
        assert len(scanner._carry) <= log_lines.MOST_LINE_BYTES
    assert scanner.counts.too_long == 1


def test_more_output_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(log_lines, "_ROOM", 256)
    records, counts = scan((ABSL + RECORD + " " + RECORD + "\n") * 500)
    assert len(records) == 1000
    assert counts == LogCounts(records=1000, with_time=500)
    long = "n" * 10_000
    (record,), _ = scan(f'__LOG_MEMORY__ MemoryLogStep {{ handle: "{long}" x: 1 }}\n')
    assert record.step.handle == long


def test_output_is_valid_until_the_next_call(real_log):
    scanner = MemoryLogScanner()
    assert MemoryLog.FromString(scanner.feed(real_log).tobytes()).record
    assert scanner.feed(b"").size == 0


def test_damaged_logs(real_log):
    """Nothing beside the text is read, and every token is counted once."""
    lines = real_log.split(b"\n")
    for n in range(300):
        rng = random.Random(f"log {n}")
        text = bytearray(b"\n".join(rng.sample(lines, 12)))
        for _ in range(rng.choice((1, 3, 10))):
            at = rng.randrange(len(text))
            text[at : at + rng.choice((0, 1, 1, 40, 300))] = rng.choice(
                (b"", b"\n", b"{", b"}", b'"', b"'", b"\\", b"#", b"__LOG_MEMORY__ ", b"\x00")
            )
        scanner = MemoryLogScanner()
        log = MemoryLog()
        log.MergeFromString(scanner.feed(FENCE.hold(bytes(text))).tobytes())
        log.MergeFromString(scanner.finish().tobytes())
        counts = scanner.counts
        tokens = bytes(text).count(b"__LOG_MEMORY__")
        assert len(log.record) == counts.records
        assert counts.records + counts.cut + counts.malformed + counts.unknown_messages == tokens
