"""The memory profile of several hosts: equal to what one would merge with message objects."""

import json
import pickle

from google.protobuf import json_format
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.tools.snapshots import alloc, profile_of

import peakline
from peakline import schema
from peakline.schema import MemoryProfile
from peakline.tools import find_tool, run_tool

SESSIONS = DATA / "sessions"
FILES = {
    "b": SESSIONS / "tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb",
    "a": SESSIONS / "tf2_two_devices/plugins/profile/2026_11_20_17_20_26/vm.xplane.pb.gz",
    'odd "]},"\\ ü': DATA / "memory_log/eager_default_allocator.log.gz",
    "nothing": DATA / "text/graph.pbtxt.gz",
}
TOOL = find_tool("memory_profile")


def answers(fmt, parameters=None):
    found = []
    for host, path in FILES.items():
        with peakline.open(path) as profile:
            found.append((host, run_tool(profile, "memory_profile", parameters, fmt).content))
    return found


def contributions(parameters=None):
    found = []
    for host, path in FILES.items():
        with peakline.open(path) as profile:
            found.append((host, TOOL.partial(profile, TOOL.validated(parameters or {}))))
    return found


def merged(parts):
    """By hand, with upb messages."""
    whole = MemoryProfile(num_hosts=len(parts))
    for host, content in parts:
        message = MemoryProfile.FromString(content)
        whole.version = message.version
        for name, profile in message.memory_profile_per_allocator.items():
            whole.memory_profile_per_allocator[f"{host}/{name}"].CopyFrom(profile)
            whole.memory_ids.append(f"{host}/{name}")
        for module in message.hlo_modules:
            module.id = len(whole.hlo_modules)
            module.plane_name = f"{host}/{module.plane_name}"
            whole.hlo_modules.append(module)
    whole.memory_ids.sort()
    return whole


def join(parts, fmt, parameters=None):
    parts = pickle.loads(pickle.dumps(parts))  # noqa: S301  (as between processes)
    return TOOL.combine(parts, TOOL.validated(parameters or {}), fmt)


@each_row("version", [0, 1])
def test_proto_and_json_are_the_merged_messages(version):
    given = {"version": version, "max_snapshots": 50}
    right = merged(answers("proto", given))
    assert len(right.memory_ids) == 3
    assert MemoryProfile.FromString(join(contributions(given), "proto", given)) == right
    text = join(contributions(given), "json", given)
    assert json_format.Parse(text, MemoryProfile(), descriptor_pool=schema.POOL) == right
    assert json.loads(text)["memoryIds"] == list(right.memory_ids)


def test_keys_come_sorted_and_strange_names_stay():
    name = ']},"x":{"memoryProfileSnapshots":[\\"'

    profile = profile_of([alloc(0, 1, 8, memory_id=name), alloc(1, 2, 4, memory_id="z")])
    one = TOOL.partial(profile, TOOL.validated({}))

    wanted = sorted([f"h/{name}", "h/z", f"g/{name}", "g/z"])
    text = json.loads(join([("h", one), ("g", one)], "json"))
    assert text["memoryIds"] == list(text["memoryProfilePerAllocator"]) == wanted
    message = MemoryProfile.FromString(join([("h", one), ("g", one)], "proto"))
    assert list(message.memory_ids) == wanted


@each_row("fmt", ["json", "proto"])
def test_hosts_without_any_thread_count_and_add_nothing(fmt):
    assert join([("a", None), ("b", None)], fmt) == b""
    one = TOOL.partial(profile_of([alloc(0, 1, 8)]), TOOL.validated({}))
    whole = join([("a", None), ("b", one)], fmt)
    hosts = (
        json.loads(whole)["numHosts"]
        if fmt == "json"
        else MemoryProfile.FromString(whole).num_hosts
    )
    assert hosts == 2


@each_row("fmt", ["json", "proto"])
def test_modules_are_numbered_anew_and_keep_their_host(fmt):
    """Only TPUs have module runs."""
    modules = [
        {"name": f"m{number}", "start_ps": number, "end_ps": number + 1, "plane_name": "TPU:0"}
        for number in range(2)
    ]
    profile = profile_of([alloc(0, 1, 8)], modules)
    single = run_tool(profile, "memory_profile", format="proto").content
    one = TOOL.partial(profile, TOOL.validated({}))
    text = join([("a", one), ("b", one)], fmt)
    whole = (
        MemoryProfile.FromString(text)
        if fmt == "proto"
        else json_format.Parse(text, MemoryProfile(), descriptor_pool=schema.POOL)
    )
    assert [(m.id, m.plane_name) for m in whole.hlo_modules] == [
        (0, "a/TPU:0"), (1, "a/TPU:0"), (2, "b/TPU:0"), (3, "b/TPU:0"),
    ]  # fmt: skip
    assert whole == merged([("a", single), ("b", single)])
