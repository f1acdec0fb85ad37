"""JSON objects from columns, against the standard library's."""

import json

import numpy as np

from peakline.toolbox.json_rows import escaped, lists, member, numbers, objects, texts
from peakline.wire import Interner

NAMES = ["", "plain", 'quo"te', "back\\slash", "new\nline", "é漢字", "\x7f"]


def _read(found):
    return json.loads(f"[{found.data.tobytes().decode().rstrip(',')}]")


def test_members_without_a_text_are_left_out():
    codes = np.array([*range(len(NAMES)), -1])
    size = np.array([0, 1, -2, 2**62, 5, 0, 7, 0])
    made = objects(
        codes.size,
        member("name", '"{}"', escaped(NAMES).at(codes)),
        member("size", "{}", numbers(size)),
        member("mib", "{}", numbers(size / 2**20)),
    )
    wanted = [
        {
            **({"name": text} if text else {}),
            **({"size": number, "mib": number / 2**20} if number else {}),
        }
        for text, number in zip([*NAMES, ""], size.tolist(), strict=True)
    ]
    assert _read(made) == wanted


def test_a_pool_of_texts_is_escaped_as_single_ones_are():
    for names in (NAMES, ["some", "plain", "names"]):
        pool = Interner()
        for name in names:
            pool.add_bytes(name.encode())
        one, other = escaped(pool.texts()), escaped(names)
        assert one.data.tobytes() == other.data.tobytes()
        assert one.bounds.tolist() == other.bounds.tolist()


def test_lists_of_objects():
    inner = objects(3, member("id", '"{}"', numbers(np.array([1, 2, 3]))))
    outer = objects(3, member("all", "[{}]", lists(inner, np.array([2, 0, 1]))))
    assert _read(outer) == [{"all": [{"id": "1"}, {"id": "2"}]}, {}, {"all": [{"id": "3"}]}]


def test_a_lone_surrogate_becomes_a_question_mark():
    assert texts(["a\ud800", "b"]).data.tobytes() == b"a?b"
