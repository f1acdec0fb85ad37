"""Who gives way when all places are taken."""

from dataclasses import dataclass

from peakline.service.places import Places


@dataclass(eq=False)
class Guest:
    peer: str
    places: Places
    group: str = ""
    gave_way: bool = False

    def give_way(self):
        self.gave_way = True

    def __post_init__(self):
        self.is_in = self.places.take(self)


def test_the_longest_wait_gives_way():
    places = Places(3, 3)
    first, second, third = (Guest(peer, places) for peer in "abc")
    places.waits(first)
    fourth = Guest("d", places)
    assert [guest.gave_way for guest in (first, second, third, fourth)] == [False, True] + 2 * [
        False
    ]
    assert (len(places), fourth.is_in) == (3, True)


def test_nobody_takes_the_place_of_one_who_is_worked_for():
    places = Places(2, 2)
    first, second = Guest("a", places), Guest("b", places)
    places.works(first)
    places.works(second)
    assert not Guest("c", places).is_in
    assert not places.free_one()
    places.waits(second)
    assert Guest("c", places).is_in
    assert (first.gave_way, second.gave_way) == (False, True)


def test_a_peer_with_all_it_may_have_displaces_only_itself():
    places = Places(100, 3)
    others = [Guest(str(number), places) for number in range(90)]
    many = [Guest("many", places) for _ in range(1000)]
    assert not any(other.gave_way for other in others)
    assert [guest.gave_way for guest in many] == [True] * 997 + [False] * 3
    for guest in many[-3:]:
        places.works(guest)
    assert not Guest("many", places).is_in
    assert Guest("new", places).is_in
    assert len(places) == 94


def test_of_a_peer_one_of_its_largest_group_gives_way():
    places = Places(100, 10)
    alone = Guest("a", places, "one call")
    many = [Guest("a", places, "many calls") for _ in range(20)]
    few = [Guest("a", places, "few calls") for _ in range(3)]
    assert [guest.gave_way for guest in many] == [True] * 14 + [False] * 6
    assert not any(guest.gave_way for guest in (alone, *few))


def test_whoever_left_is_forgotten():
    places = Places(4, 2)
    guests = [Guest(peer, places) for peer in "aabb"]
    places.works(guests[0])
    for guest in (*guests, *guests):
        places.leave(guest)
        places.waits(guest)
    assert len(places) == 0
    assert all(Guest(peer, places).is_in for peer in "aabb")
    assert not any(guest.gave_way for guest in guests)
