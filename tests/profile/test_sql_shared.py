"""What processes of queries share with the one that started them: columns, files, frames."""

import json
import os
import socket
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.profile.fake import FakeReader, columns_of
from tests.profile.sql_processes import ask, last, numbers
from tests.profile.test_query import ProjectingReader

from peakline.errors import CheckFailed
from peakline.tables import Profile
from peakline.tables.sql_process import frames
from peakline.tables.sql_process.pool import SqlPool


@pytest.fixture
def profile():
    with Profile(ProjectingReader()) as opened:
        yield opened


class TestShared:
    def test_columns_are_written_once(self, profile):
        sql = SqlPool()
        ask(sql, profile, "select name from events")
        first = sql.shared.numbers()
        assert len(first) == 1
        size = sql.shared.nbytes
        ask(sql, profile, "select count(*) from events where name = 'a'")
        assert (sql.shared.numbers(), sql.shared.nbytes) == (first, size)
        ask(sql, profile, "select name, duration_ps from events")
        assert first < sql.shared.numbers()
        assert len(sql.shared.numbers()) == 2
        sql.close()
        # For another process, too.
        (row,) = json.loads(ask(sql, profile, "select sum(duration_ps) n from events").content)
        assert row == {"n": 10}
        assert len(sql.shared.numbers()) == 2
        sql.close()

    def test_columns_go_with_their_profile(self, sql):
        before = sql.shared.numbers()
        with Profile(ProjectingReader()) as profile:
            ask(sql, profile, "from events, steps")
            assert len(sql.shared.numbers() - before) == 2
        assert sql.shared.numbers() <= before

    def test_columns_make_room(self, profile):
        sql = SqlPool(shared_bytes=0)
        query = "select count(*) n, sum(e.duration_ps) d from events e, steps s"
        for _ in range(2):
            assert json.loads(ask(sql, profile, query).content) == [{"n": 6, "d": 20}]
            assert sql.shared.numbers() == frozenset()
        sql.shared.resize(1 << 30)
        ask(sql, profile, "from steps")
        ask(sql, profile, "from events")
        ask(sql, profile, "select max(end_ps) from steps")
        used_last = ask(sql, profile, "select max(end_ps) n from steps").content
        sql.shared.resize(sql.shared.nbytes - 1)
        assert len(sql.shared.numbers()) == 1
        ((name, columns),) = [
            (name, columns)
            for name, columns in profile.made_once(sql.shared, None).tables.items()
            if columns
        ]
        assert (name, "end_ps" in columns) == ("steps", True)
        assert ask(sql, profile, "select max(end_ps) n from steps").content == used_last
        sql.close()

    def test_what_is_given_up_takes_no_memory(self, profile):
        sql = SqlPool()
        ask(sql, profile, "from events")
        (piece,) = {*profile.made_once(sql.shared, None).tables["events"].values()}
        seen = os.dup(piece.descriptor)
        assert os.fstat(seen).st_size == piece.size
        del piece
        profile.close()
        assert os.fstat(seen).st_size == 0
        os.close(seen)
        sql.close()

    def test_many_profiles_one_process(self, sql):
        """Each sees its own tables."""
        ask(sql, Profile(ProjectingReader()), "select 1")
        for many in (3, 1, 2):
            rows = [{"step_id": n, "name": f"train {n}"} for n in range(many)]
            with Profile(FakeReader({"steps": rows})) as profile:
                assert json.loads(ask(sql, profile, "select count(*) n from steps").content) == [
                    {"n": many}
                ]
                with pytest.raises(CheckFailed, match="events does not exist"):
                    ask(sql, profile, "from events", remote=False)

    def test_a_large_table_is_not_copied_for_a_query(self, sql):
        rows = columns_of("steps", [{"step_id": 1}])
        many = type(rows)(
            {
                name: rows[name].take([0] * 2_000_000)
                if hasattr(rows[name], "take")
                else rows[name]
                for name in rows
            },
            {},
        )
        assert many.rows == 2_000_000
        with Profile(FakeReader({"steps": many})) as profile:
            query = "select sum(step_id) n from steps"
            assert json.loads(ask(sql, profile, query).content) == [{"n": 2_000_000}]
            pid = last(sql)
            written = numbers("self", "io", "wchar")[0]
            taken = numbers(pid, "status", "RssAnon")[0]
            for _ in range(3):
                ask(sql, profile, query)
            assert numbers("self", "io", "wchar")[0] - written < 1 << 20
            assert numbers(pid, "status", "RssAnon")[0] - taken < 8 << 10


class TestFiles:
    @pytest.mark.parametrize("in_memory", [True, False])
    def test_have_no_name_and_their_content(self, monkeypatch, in_memory):
        if not in_memory:
            monkeypatch.delattr(os, "memfd_create")
        descriptor = frames.nameless_file("peakline-test")
        assert frames.content(descriptor) == b""
        assert frames.mapped(descriptor).size == 0
        os.write(descriptor, b"abc")
        assert frames.content(descriptor) == b"abc"
        assert frames.mapped(descriptor).to_pybytes() == b"abc"
        assert not Path(f"/proc/self/fd/{descriptor}").readlink().exists()
        os.close(descriptor)


class TestFrames:
    def test_bring_documents_and_open_files(self):
        one, other = socket.socketpair()
        with one, other, Path(__file__).open("rb") as file:
            frames.send(one, {"a": ["\ud800", 1]}, [file.fileno()])
            frame, (descriptor,) = frames.receive(other)
            assert frame == {"a": ["\ud800", 1]}
            assert os.fstat(descriptor) == os.fstat(file.fileno())
            os.close(descriptor)

    @each_row(
        "said",
        [
            b"", b"\1", b"\1\0\0\0\0\0\0\0", b"\xff" * 8, b"\xff" * 9, b"\1" + b"\0" * 7 + b"[",
            b"\2" + b"\0" * 7 + b"[]", b"\1" + b"\0" * 7 + b"1", b"\2" + b"\0" * 7 + b"\xff\xff",
        ],
    )  # fmt: skip
    def test_that_are_none_are_the_end(self, said):
        one, other = socket.socketpair()
        with one, other:
            one.sendall(said)
            one.close()
            with pytest.raises(frames.EndOfFramesError):
                frames.receive(other)
