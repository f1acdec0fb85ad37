"""A tool, a column, a format and a view are added in a copy with at most two files each.

Every face has them then. Kinds of findings are in tests/memory/test_findings.py.
"""

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.house.scratch import Scratch

MOST_FILES = 2
SAMPLE = "tests/data/sessions/jax_cpu"

TOOL = '''
"""How many events ran."""

from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool


class EventCountParameters(Parameters):
    """Which events."""

    name: str | None = parameter(None, description="only events of this name")


def _run(profile, parameters, output_format):
    names = profile.columns("events", frozenset(("name",))).names("name").to_list()
    wanted = [name for name in names if parameters.name in {None, name}]
    return b'{"events":%d}' % len(wanted)


TOOL = Tool(
    name="event_count",
    doc="How many events ran.",
    parameters=EventCountParameters,
    formats=("json",),
    shows=(("events",),),
    run=_run,
)
'''

FORMAT = '''
"""Plain lists of buffers."""

import numpy as np

from peakline.formats.common.format import Format
from peakline.formats.common.reader import FileReader
from peakline.tables.columns import Columns, Names


class PlainReader(FileReader):
    """One list: an op and its bytes in each line."""

    tables = frozenset(("buffers",))

    def read(self, table, warnings, columns=None):
        """The buffers."""
        lines = bytes(self._file.buffer).decode().splitlines()[1:]
        count = len(lines)
        size = np.array([int(line.split()[1]) for line in lines], np.int64)
        return Columns({
            "buffer_id": np.arange(count, dtype=np.int64),
            "allocator": Names.constant("plain", count),
            "op": Names.encode([line.split()[0] for line in lines]),
            "allocated_bytes": size,
            "requested_bytes": size,
        }, {})

    def duration_ps(self):
        """Nothing has a time."""
        return 0


FORMAT = Format(
    name="plain_buffers",
    what="plain lists of buffers",
    written_by="this test",
    fills="`buffers`",
    reader="peakline.formats.plain_buffers:PlainReader",
    rank=20,
    begins=lambda head: head.startswith(b"PLAIN BUFFERS"),
    is_text=True,
)
'''

VIEW = """-- How many lines every plane has.
-- Units: none.
-- Tables: lines
-- column: plane_id int64: the plane
-- column: lines int64: its lines
SELECT plane_id, count(*) AS lines FROM lines GROUP BY ALL ORDER BY ALL
"""

SERVED = """
import json, sys
import grpc, httpx
from tests.service.server_here import server_here
from peakline import schema
with server_here(sys.argv[1]) as server:
    base = f"http://127.0.0.1:{server.http_port}/api"
    names = [tool["name"] for tool in httpx.get(f"{base}/tools").json()]
    session = httpx.get(f"{base}/sessions").json()[0]["session_id"]
    content = httpx.get(f"{base}/sessions/{session}/tools/event_count").json()
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        ask = channel.unary_unary(
            "/tensorflow.ProfileAnalysis/GetSessionToolData",
            request_serializer=schema.ProfileSessionDataRequest.SerializeToString,
            response_deserializer=schema.ProfileSessionDataResponse.FromString,
        )
        answer = ask(schema.ProfileSessionDataRequest(session_id=session, tool_name="event_count"))
    print(json.dumps([names, content, json.loads(answer.output)]))
"""


@pytest.fixture
def scratch(tmp_path, root):
    with closing(Scratch(tmp_path, root)) as copy:
        yield copy


def _docs(scratch, call):
    return scratch.run("-c", f"import generate_docs as g; print(*g.{call}, sep=chr(10))")


def test_a_tool_is_one_file_and_every_face_has_it(scratch, root):
    scratch.add("tools/event_count.py", TOOL)
    path = root / SAMPLE
    assert "event_count" in scratch.peakline("tool", "--list", path)
    result = json.loads(scratch.peakline("tool", "event_count", path))
    assert result["events"] > 0
    none = scratch.peakline("tool", "event_count", path, "-p", "name=no such event")
    assert json.loads(none) == {"events": 0}
    names, over_http, over_grpc = json.loads(scratch.run("-c", SERVED, path))
    assert "event_count" in names
    assert over_http == over_grpc == result
    docs = _docs(scratch, "tools_page()")
    assert "## event_count" in docs
    assert "| `name` |" in docs
    assert scratch.changed == ["tools/event_count.py"]


def test_a_column_is_its_definition_and_what_makes_it(scratch, tmp_path):
    scratch.edit(
        "tables/time_tables.py",
        "    longest_idle_ps int64 the longest time without work\n",
        "    longest_idle_ps int64 the longest time without work\n"
        "    pieces int64 how many pieces its busy time has\n",
    )
    scratch.edit(
        "timing/device_time.py",
        "            int((busy[0][1:] - busy[1][:-1]).max(initial=0)),\n",
        "            int((busy[0][1:] - busy[1][:-1]).max(initial=0)),\n"
        "            busy[0].size,\n",
    )
    assert len(scratch.changed) <= MOST_FILES
    kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
    events = [kernel | {"name": "k", "ts": at, "dur": 2} for at in (1, 2, 9)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    query = "SELECT pieces, busy_ps FROM device_time"
    result = json.loads(scratch.peakline("sql", path, query, "--format", "json"))
    assert result == [{"pieces": 2, "busy_ps": 5_000_000}]
    assert "how many pieces its busy time has" in _docs(scratch, "tables_page()")


def test_a_format_is_one_file_and_every_verb_reads_it(scratch, tmp_path):
    scratch.add("formats/plain_buffers.py", FORMAT)
    path = tmp_path / "list.txt"
    path.write_text("PLAIN BUFFERS\nweights 3000000\nworkspace 1000000\n")
    result = json.loads(scratch.peakline("memory", path, "--json"))
    assert result["profile"]["format"] == "plain_buffers"
    (allocator,) = result["allocators"]
    assert allocator["peak_bytes"] == 4_000_000
    assert [row["op"] for row in allocator["peak_buffers"]] == ["weights", "workspace"]
    page = tmp_path / "report.html"
    scratch.peakline("report", path, "-o", page)
    assert "weights" in page.read_text()
    call = "formats_page(open(str(g.DOCS / 'formats.md')).read())"
    assert "| plain lists of buffers | `plain_buffers` |" in _docs(scratch, call)
    assert scratch.changed == ["formats/plain_buffers.py"]


def _accelerator_trace():
    """Twelve steps of 9.9 ms: a product of matrices, then an exchange that nothing hides."""
    yield "ACCELERATOR TRACE"
    for step in range(12):
        at = step * 10_000
        product, exchange = ({"ticket": 2 * step + number} for number in (1, 2))
        shape = {"shape": "4,2,1/256,1,1"}
        group = {"exchange": "all_reduce", "ring": "dp", "members": "[0, 1]", "turn": step}
        size = {"count": 1024, "type": "float"}
        for event in (
            (0, f"turn {step}", "step", at, 9900, {}),
            (0, "mat_product", "op", at + 100, 800, {}),
            (0, "push", "submit", at + 200, 50, product),
            (0, "exchange_grads", "op", at + 1000, 300, {}),
            (0, "push", "submit", at + 1100, 50, exchange),
            (1, "mm_17", "work", at + 300, 4000, product | shape),
            (1, "xk_9", "work", at + 4300, 5000, exchange | group | size),
            (1, "gap", "idle", at + 9300, 400, {}),
        ):
            yield json.dumps([*event[:5], step, event[5]])


COLLECTIVES = """
import json, sys
import peakline
from peakline.trace.collective_records import collective_records
found = collective_records(peakline.open(sys.argv[1]))
print(json.dumps([
    found.name.to_list(), found.group.to_list(), found.sequence.tolist(),
    found.input_bytes.tolist(), found.output_bytes.tolist(), found.ranks_of(0),
]))
"""


def test_a_third_vendors_trace_is_one_file_and_every_question_about_time_is_answered(
    scratch, tmp_path
):
    text = Path(__file__).with_name("accelerator_trace.py").read_text(encoding="utf-8")
    scratch.add("formats/accelerator_trace.py", text)
    path = tmp_path / "trace.txt"
    path.write_text("\n".join(_accelerator_trace()))

    def rows(query):
        return json.loads(scratch.peakline("sql", path, query, "--format", "json"))

    kernels = rows("SELECT kernel, op, grid, block, occurrences, total_ps FROM kernels ORDER BY 1")
    assert [tuple(row.values()) for row in kernels] == [
        ("mm_17", "mat_product", "4,2,1", "256,1,1", 12, 48 * 10**9),
        ("xk_9", "exchange_grads", "1,1,1", "1,1,1", 12, 60 * 10**9),
    ]
    assert [tuple(row.values()) for row in rows(
        "SELECT side, op, self_ps FROM op_stats ORDER BY side, op"
    )] == [
        ("device", "exchange_grads", 60 * 10**9), ("device", "mat_product", 48 * 10**9),
        ("host", "exchange_grads", 12 * 300 * 10**6), ("host", "mat_product", 12 * 800 * 10**6),
    ]  # fmt: skip
    ops = json.loads(scratch.peakline("ops", path, "--json"))
    assert {row["op"] for row in ops["ops"]} == {"mat_product", "exchange_grads"}
    steps = json.loads(scratch.peakline("steps", path, "--json"))
    assert steps["times"]["count"] == 12
    parts = {row["part"]: row["per_step_ps"] for row in steps["parts"]}
    # The queue is idle from 0 to 0.3 ms, of which an op runs for 0.2, and from 9.3 ms on.
    assert parts == {
        "communication": 5 * 10**9, "compute": 4 * 10**9, "host_compute": 2 * 10**8,
        "idle": 7 * 10**8,
    }  # fmt: skip
    summary = json.loads(scratch.peakline("summary", path, "--json"))
    assert [one["kind"] for one in summary["first"]] == ["communication_not_overlapped"]
    names, groups, sequence, given, result, ranks = json.loads(scratch.run("-c", COLLECTIVES, path))
    assert (names, groups, sequence) == (["all_reduce"] * 12, ["dp"] * 12, [*range(12)])
    assert (given, result, ranks) == ([4096] * 12, [-1] * 12, [0, 1])
    assert scratch.changed == ["formats/accelerator_trace.py"]


def test_a_view_is_one_file(scratch, root):
    scratch.add("tables/views/lines_of_planes.sql", VIEW)
    path = root / SAMPLE
    assert "lines_of_planes" in scratch.peakline("sql", "--list", path)
    query = "SELECT sum(lines) AS n FROM lines_of_planes"
    ours = json.loads(scratch.peakline("sql", path, query, "--format", "json"))
    all_lines = "SELECT count(*) AS n FROM lines"
    assert ours == json.loads(scratch.peakline("sql", path, all_lines, "--format", "json"))
    assert "## lines_of_planes" in _docs(scratch, "views_page()")
    assert scratch.changed == ["tables/views/lines_of_planes.sql"]


WORDED = """
import json, sys
import peakline
from peakline.render.notebook import html_of
with peakline.open(sys.argv[1]) as profile:
    page = json.loads(profile.tool("memory_findings").content)["savings"]
    print(json.dumps([html_of(profile.memory()), page]))
"""


def test_a_sentence_of_the_memory_answer_is_one_file(scratch, root, tmp_path):
    scratch.edit("document/memory.py", '"what would lower the peak"', '"what makes the peak lower"')
    scratch.edit("document/details.py", "The peak would be ", "The peak would fall to ")
    path = root / "tests/data/programs/leak_list.xplane.pb.gz"
    assert "what makes the peak lower" in scratch.peakline("memory", path)
    page = tmp_path / "report.html"
    scratch.peakline("report", path, "-o", page)
    assert "What makes the peak lower" in page.read_text()
    notebook, savings = json.loads(scratch.run("-c", WORDED, path))
    assert "What makes the peak lower" in notebook
    assert {saving["sentence"].partition("to ")[0] for saving in savings} == {
        "The peak would fall "
    }
