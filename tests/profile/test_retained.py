"""What readers and answers declare to hold is all that they hold."""

from pathlib import Path

import numpy as np
from tests.each_row import each_row
from tests.sources.format_samples import samples

import peakline
from peakline.errors import PeaklineError
from peakline.tables.retained import retained_bytes
from peakline.tools import available_tools, run_tool

_DATA = Path(__file__).parent.parent / "data"
_SESSION = "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb"


def read_all(path):
    """The profile of ``path``, still open, after every table and tool was asked for."""
    profile = peakline.open(path)
    for table in profile.tables:
        profile.columns(table)
    for tool in available_tools(profile):
        try:
            run_tool(profile, tool)
        except PeaklineError:
            continue
    return profile


def arrays_below(root):
    """Bytes of all NumPy arrays that attributes of ours lead to, each once."""
    seen, sizes, waiting, alive = set(), {}, [root], []
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        alive.append(item)
        if isinstance(item, np.ndarray):
            while isinstance(item.base, np.ndarray):
                item = item.base
            if item.base is None:
                sizes[item.__array_interface__["data"][0]] = item.nbytes
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += item
        elif type(item).__module__.startswith("peakline.") and hasattr(item, "__dict__"):
            waiting += vars(item).values()
    return sum(sizes.values())


def check_declared(path):
    with read_all(path) as profile:
        undeclared = set()
        size = retained_bytes(profile, undeclared=undeclared)
        assert [kind for kind in undeclared if kind.__module__.startswith("peakline.")] == []
        assert profile.nbytes == size >= arrays_below(profile)


def test_every_reader_declares_what_it_holds(tmp_path):
    for sample in samples(_DATA):
        path = tmp_path / sample.name
        path.write_bytes(sample.file)
        check_declared(path)


@each_row("name", [_SESSION, "programs/leak_list.xplane.pb.gz"])
def test_every_answer_declares_what_it_holds(name):
    check_declared(_DATA / name)


def test_what_declares_nothing_is_noticed():
    class Holder:
        def __init__(self):
            self.values = np.zeros(1000, np.int64)

    undeclared = set()
    assert retained_bytes(Holder(), undeclared=undeclared) < 100
    assert undeclared == {Holder}
    Holder.__retained__ = "values missing"
    assert retained_bytes(Holder()) > 8000
