"""How many bytes of answers may be on their way to clients."""

from peakline.service.deliveries import Deliveries
from peakline.service.settings import Settings

MOST = 64 << 20


def _deliveries():
    return Deliveries(Settings(".", cache_bytes=0))


def test_the_oldest_gives_way():
    deliveries, gone = _deliveries(), []
    for number in range(4):
        deliveries.add(bytes(MOST // 2), lambda number=number: gone.append(number))
    assert gone == [0, 1]


def test_one_alone_may_be_larger():
    deliveries, gone = _deliveries(), []
    delivery = deliveries.add(bytes(MOST + 1), lambda: gone.append(0))
    assert gone == []
    deliveries.remove(delivery)
    deliveries.add(bytes(MOST), lambda: gone.append(1))
    assert gone == []


def test_the_same_bytes_for_many_clients_count_once():
    deliveries, gone = _deliveries(), []
    content = bytes(MOST)
    held = [deliveries.add(content, lambda: gone.append("shared")) for _ in range(100)]
    assert gone == []
    for one in held[1:]:
        deliveries.remove(one)
    deliveries.remove(held[1])
    deliveries.add(b"1", lambda: gone.append("new"))
    assert gone == ["shared"]
    deliveries.remove(held[0])
    deliveries.add(bytes(MOST - 1), lambda: gone.append("last"))
    assert gone == ["shared"]
