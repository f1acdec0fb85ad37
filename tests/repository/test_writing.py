import stat

import pytest

from peakline.errors import UsageError
from peakline.repository import write_atomically


def write(content):
    return lambda stream: stream.write(content)


def test_the_file_has_the_content_and_nothing_else_is_left(tmp_path):
    write_atomically(str(tmp_path / "f"), write(b"abc"))
    assert (tmp_path / "f").read_bytes() == b"abc"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_an_existing_file_is_replaced_only_on_demand(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists; use --force"):
        write_atomically(str(path), write(b"new"))
    assert path.read_bytes() == b"old"
    write_atomically(str(path), write(b"new"), replace=True)
    assert path.read_bytes() == b"new"


def test_a_name_taken_while_writing_is_kept(tmp_path):
    path = tmp_path / "f"
    with pytest.raises(UsageError, match="exists"):
        write_atomically(str(path), lambda _stream: path.write_bytes(b"theirs"))
    assert path.read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failure_leaves_nothing(tmp_path):
    def fail(stream):
        stream.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomically(str(tmp_path / "f"), fail)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_nowhere_is_not_written_through(tmp_path):
    (tmp_path / "f").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError, match="exists"):
        write_atomically(str(tmp_path / "f"), write(b"x"))
    assert not (tmp_path / "target").exists()


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        write_atomically(str(tmp_path), write(b""), replace=True)
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        write_atomically(str(tmp_path / "no/f"), write(b""))


def test_others_may_read_it_as_any_new_file(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(str(tmp_path / "f"), write(b""))
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "usual").stat().st_mode
    )
