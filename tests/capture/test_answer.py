import random

import pytest
from tests.capture.peers import answer_of, sample_profile, space
from tests.each_row import each_row

from peakline.capture.answer import check_xspace, has_events, read_answer
from peakline.errors import InputError
from peakline.schema import ProfileResponse, XSpace


def content_of(answer):
    spans = zip(answer.xspace.start.tolist(), answer.xspace.length.tolist(), strict=True)
    return b"".join(answer.buffer[start : start + length].tobytes() for start, length in spans)


def test_the_profile_is_a_slice_of_the_answer(sessions):
    profile = sample_profile(sessions)
    answer = read_answer(answer_of(profile))
    check_xspace(answer)
    # Serialised anew by protobuf, which orders map entries as it likes: the length is the same.
    assert answer.size == len(profile)
    assert XSpace.FromString(content_of(answer)) == XSpace.FromString(profile)
    assert has_events(answer.buffer, answer.xspace)
    assert not answer.empty_trace


def test_a_field_in_several_pieces_is_merged_as_protobuf_does():
    first, second = space(1), space(2)
    content = answer_of(first) + answer_of(empty_trace=True) + answer_of(second)
    answer = read_answer(content)
    check_xspace(answer)
    assert XSpace.FromString(content_of(answer)) == ProfileResponse.FromString(content).xspace
    assert answer.empty_trace


def test_what_else_an_answer_holds():
    answer = read_answer(
        answer_of(tool_data=[{"name": "trace", "data": b"abc"}, {"name": "é", "data": b""}])
    )
    assert [(file.name, file.length) for file in answer.tool_files] == [("trace", 3), ("é", 0)]
    assert answer.size == 0


def test_an_old_server_may_send_the_profile_as_a_tools_file():
    content = space().SerializeToString()
    files = [{"name": f"t{number}", "data": b"x"} for number in range(300)]
    files.append({"name": "xplane.pb", "data": content})
    answer = read_answer(answer_of(tool_data=files))
    assert content_of(answer) == content
    assert len(answer.tool_files) == 300


def test_an_empty_answer_has_nothing():
    answer = read_answer(b"")
    assert (answer.size, answer.empty_trace, answer.tool_files) == (0, False, ())


def test_unknown_fields_are_no_damage():
    # Field 99, as a newer server might add.
    assert read_answer(answer_of(space()) + b"\x9a\x06\x03abc").size == space().ByteSize()


@each_row(
    "content",
    [
        b"<html><body>502 Bad Gateway</body></html>", b"hello", b"\xff" * 20, b"\x42\x7f\x0a",
        answer_of(space())[:-3], space().SerializeToString(),
    ],
)  # fmt: skip
def test_what_is_no_answer(content):
    with pytest.raises(InputError, match="its answer"):
        read_answer(content)


def wrapped(content):
    """A sound answer around what should be an XSpace."""
    assert len(content) < 128
    return bytes([0x42, len(content)]) + content


@each_row(
    "content",
    [
        b"this is no protobuf message at all, it is text",
        b"\xff" * 20,
        b"\x00" * 20,
        answer_of(tool_data=[{"name": "trace", "data": b"a"}]),
        b"\x0a\x05\x12\x7fabc",
        space().SerializeToString()[:-1],
    ],
)
def test_what_is_no_profile(content):
    answer = read_answer(wrapped(content))
    with pytest.raises(InputError, match="sent"):
        check_xspace(answer)


def test_random_bytes_are_never_taken_for_a_profile():
    chance = random.Random(7)
    for _ in range(300):
        content = chance.randbytes(100)
        with pytest.raises(InputError):
            check_xspace(read_answer(wrapped(content)))


def test_a_profile_without_events():
    for empty in (space(0), XSpace(hostnames=["a"]), XSpace()):
        answer = read_answer(answer_of(empty))
        check_xspace(answer)
        assert not has_events(answer.buffer, answer.xspace)
    assert has_events(*_buffer_and_spans(space(1)))


def _buffer_and_spans(xspace):
    answer = read_answer(answer_of(xspace))
    return answer.buffer, answer.xspace
