import sys
import unicodedata

import pytest
from tests.each_row import each_row

from peakline.errors import UsageError
from peakline.repository import check_name, host_file_name
from peakline.repository.names import host_of, is_name, newest_of_workers, recording_of

LIGHTNING = "fit-lightning-[Strategy]SingleDeviceStrategy.training_step"


@each_row(
    "name", ["s", "2026_11_20_17_02_06", "a b", "worker-0.example.com", "Ω雪", "a:1", "x" * 200]
)
def test_a_name_passes_as_it_is(name):
    assert check_name("host", name) == name


@each_row(
    "name",
    [
        "", ".", "..", ".hidden", "-rf", "\u202e", "a\u200bb", "\ufeffa", "\u2066a", "a/b", "/",
        "a\\b", "a\0", "a\nb", "\x1b[0m", "a\x7f", "a\x85b", "a\u2028b", "a\ud800b", "x" * 201,
        "雪" * 67,
    ],
)  # fmt: skip
def test_what_is_no_name_is_one_short_line(name):
    with pytest.raises(UsageError, match="is no session id: ") as caught:
        check_name("session id", name)
    message = str(caught.value)
    message.encode()
    assert message.isprintable()
    assert len(message) < 160


def test_every_invisible_character_is_refused():
    for code in range(sys.maxunicode + 1):
        one = chr(code)
        if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            assert not is_name(f"a{one}"), hex(code)
    assert is_name("a\u00e9\u0301 \u4e2d\U0001f600")


def test_a_colon_is_an_underscore_in_a_file():
    assert host_file_name("localhost:9012") == "localhost_9012"


@each_row(
    ("file_name", "expected"),
    [
        ("vm.xplane.pb", ("vm", 0)),
        ("vm.xplane.pb.gz", ("vm", 1)),
        ("vm.profile", ("vm", 2)),
        ("a.b.c.xplane.pb", ("a.b.c", 0)),
        (".xplane.pb", None),
        (".vm.xplane.pb", None),
        ("xplane.pb", None),
        ("vm.xplane.pb.tmp", None),
        ("a\nb.xplane.pb", None),
        ("vm_1707.1795856066108631811.pt.trace.json", ("vm_1707", 3)),
        ("vm_1707.1795856066108631811.pt.trace.json.gz", ("vm_1707", 4)),
        ("a.b.17.pt.trace.json", ("a.b", 3)),
        (f"{LIGHTNING}.1795855858144846902.pt.trace.json", (LIGHTNING, 3)),
        ("step.pt.trace.json", ("step", 3)),
        ("17.pt.trace.json", ("17", 3)),
        ("a.\u0661.pt.trace.json", ("a.\u0661", 3)),
        ("-rank.17.pt.trace.json", None),
        (".17.pt.trace.json", None),
        ("a\nb.17.pt.trace.json", None),
        ("vm.trace.json.gz", None),
    ],
)
def test_which_files_are_hosts(file_name, expected):
    assert host_of(file_name) == expected


def test_which_files_are_recordings_of_pytorch():
    assert recording_of("a.17.pt.trace.json.gz") == "a.17"
    assert recording_of("step.pt.trace.json") == "step"
    for name in ("a.17.trace.json", "a.17.profile", "-a.17.pt.trace.json", ".pt.trace.json"):
        assert recording_of(name) is None


def test_the_newest_recording_of_each_worker():
    old, new = "1795856067518485289", "1795856067678188868"
    hosts = [(f"a.{new}", 1), (f"a.{old}", 2), ("b", 3), ("10.0.0.1", 4), ("10.0.0.2", 5)]
    assert newest_of_workers(hosts) == [hosts[0], *hosts[2:]]
