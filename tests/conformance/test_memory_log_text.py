"""Real logs and text files through the scanner and through google.protobuf.text_format.

Inputs: the sample files, and every log and text-format file in the folders that PEAKLINE_SAMPLES
names (separated by colons).
"""

import gzip
import re

from google.protobuf import text_format

from peakline import schema
from peakline.formats.common.format import message_names
from peakline.formats.common.recognise import recognise
from peakline.formats.common.translate import OLD_NAMES
from peakline.schema import MemoryLog, MemoryLogRecord
from peakline.wire import text_to_wire
from peakline.wire.log_lines import MemoryLogScanner
from tests.conformance.oracle import DATA, more_samples
from tests.each_row import each_row

ROOTS = [DATA, *more_samples()]
RECORD = re.compile(r"__LOG_MEMORY__ (\w+) \{ (?:goo\.gle/debug\w+\s+)?(.*)\}\s*$")
MEMBERS = {
    field.message_type.name: field.name
    for field in schema.descriptor("peakline.MemoryLogRecord").oneofs_by_name["record"].fields
}


def files(*patterns):
    """Files by name: the root's name and the path below it."""
    return {
        f"{root.name}/{path.relative_to(root)}": path
        for root in ROOTS
        for pattern in patterns
        for path in sorted(root.glob(f"**/{pattern}"))
    }


LOGS = files("*.log*", "logs/*.txt")
TEXTS = files("*.pbtxt*")


def content_of(path):
    """The bytes of a file, unpacked."""
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def record_of(line):
    """The record of one line as the reference reads it, None where it cannot."""
    result = RECORD.search(line)
    record = MemoryLogRecord()
    member = getattr(record, MEMBERS[result[1]])
    member.SetInParent()
    try:
        text_format.Parse(result[2], member)
    except text_format.ParseError:
        return None
    return record


def scanned(content, block):
    """The records that the scanner finds, fed a block at a time."""
    scanner, out = MemoryLogScanner(), b""
    for start in range(0, len(content), block):
        out += scanner.feed(content[start : start + block]).tobytes()
    out += scanner.finish().tobytes()
    records = list(MemoryLog.FromString(out).record)
    assert len(records) == scanner.counts.records
    for record in records:
        record.ClearField("time_ns")
        record.ClearField("thread_id")
    return records


@each_row("name", LOGS)
def test_every_record_of_a_log_line_by_line(name):
    content = content_of(LOGS[name])
    lines = filter(RECORD.search, content.decode(errors="replace").split("\n"))
    expected = [record for record in map(record_of, lines) if record is not None]
    for block in (100_000, 4 << 20):
        assert scanned(content, block) == expected


@each_row("name", TEXTS)
def test_every_file_in_text_format(name):
    content = content_of(TEXTS[name])
    kind = schema.message(message_names()[recognise(content[: 1 << 20]).format])
    result = text_to_wire(content, kind.DESCRIPTOR, OLD_NAMES)
    assert (result.error, result.unknown) == ("", 0)
    text = content.decode()
    if kind is not schema.RunMetadata:
        for old, new in OLD_NAMES["tensorflow.MemoryStats"].items():
            text = text.replace(old, new)
    assert kind.FromString(result.data.tobytes()) == text_format.Parse(text, kind())
