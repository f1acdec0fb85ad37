"""Arrows from a send to its receipt: by channel, rendezvous and pairs, never by when they ran."""

import json

import pytest

import peakline
from reference.xspace_builder import SpaceBuilder

US = 10**6
DEVICES = 3
RENDEZVOUS = 'frontend_attributes={_xla_host_transfer_rendezvous="%s"}'
PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{%s}"}'


def send(number, attributes):
    result = "(f32[8]{0}, u32[], token[])"
    return f"%send.{number} = {result} send(f32[8]{{0}} %x, token[] %t), {attributes}"


def receive(number, attributes):
    result = "(f32[8]{0}, u32[], token[])"
    return f"%recv.{number} = {result} recv(token[] %t), {attributes}"


def arrows(tmp_path, *planes, **parameters):
    """The arrows of devices with these events: the name and the start of each, in us."""
    builder = SpaceBuilder()
    for number, events in enumerate(planes):
        line = builder.plane(f"/device:TPU:{number}").line("XLA Ops")
        for name, start in events:
            line.event(name, start * US, US)
    path = tmp_path / "tpu.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    with peakline.open(path) as profile:
        result = json.loads(profile.tool("timeline", view="arrows", **parameters).content)
    return sorted(
        (kind, begin["start_ps"] // US, begin["line"], end["start_ps"] // US, end["line"])
        for kind, begin, end in zip(result["kind"], result["from"], result["to"], strict=True)
    )


def test_a_channel_ties_a_send_to_its_receipt(tmp_path):
    first = [
        (send(1, "channel_id=5"), 0),
        (send(2, "channel_id=6"), 3),
        (send(1, "channel_id=5"), 10),
    ]
    # The second device is ahead by its own clock, and receives in another order.
    second = [(receive(9, "channel_id=6"), 1), (receive(4, "channel_id=5"), 2),
              (receive(4, "channel_id=5"), 30)]  # fmt: skip
    assert arrows(tmp_path, first, second) == [
        ("send", 0, 0, 2, 1),
        ("send", 3, 0, 1, 1),
        ("send", 10, 0, 30, 1),
    ]
    # Of a stretch those with one end in it.
    inside = arrows(tmp_path, first, second, start_ps=25 * US, end_ps=40 * US)
    assert inside == [("send", 10, 0, 30, 1)]


def test_a_rendezvous_does_too(tmp_path):
    first = [(send(1, "channel_id=1, " + RENDEZVOUS % "grad_0"), 0)]
    second = [(receive(2, "channel_id=7, " + RENDEZVOUS % "grad_0"), 4)]
    assert arrows(tmp_path, first, second) == [("send", 0, 0, 4, 1)]


def test_a_permutation_says_from_where_to_where(tmp_path):
    said = "channel_id=3, " + PAIRS % "{0,1},{1,2}"
    planes = [[(send(1, said), 10 * k), (receive(2, said), 10 * k + 5)] for k in range(DEVICES)]
    assert arrows(tmp_path, *planes) == [("send", 0, 0, 15, 1), ("send", 10, 1, 25, 2)]


CHANNEL = "channel_id=2"


@pytest.mark.parametrize(
    "planes",
    [
        # Other channels, at the same moment.
        ([(send(1, CHANNEL), 0)], [(receive(2, "channel_id=4"), 0)]),
        # Two devices receive, and nothing says which.
        ([(send(1, CHANNEL), 0)], [(receive(2, CHANNEL), 1)], [(receive(2, CHANNEL), 1)]),
        # One receipt was not recorded: which one is not known.
        ([(send(1, CHANNEL), 0), (send(1, CHANNEL), 5)], [(receive(2, CHANNEL), 6)]),
        # Two programs have a channel of that number.
        ([(send(1, CHANNEL), 0), (send(8, CHANNEL), 5)], [(receive(2, CHANNEL), 6)]),
        # Its own receipt: to itself no device sends.
        ([(send(1, CHANNEL), 0), (receive(2, CHANNEL), 6)],),
        # Neither, but what is called so, and what waits for them.
        ([("send(", 0), ("%send-done.1 = token[] send-done(%send.1), channel_id=2", 1)],
         [(receive(2, CHANNEL), 6)]),
    ],
)  # fmt: skip
def test_nothing_is_guessed(tmp_path, planes):
    assert arrows(tmp_path, *planes) == []
