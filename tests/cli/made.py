"""Profiles made of tables by hand, for the verbs about time to read from a path."""

from tests.profile.fake import FakeReader, columns_of

MS = 10**9


def made(monkeypatch, tmp_path, **tables):
    """A path that opens as a profile with these tables, each a list of rows."""
    reader = FakeReader({name: columns_of(name, rows) for name, rows in tables.items()})
    monkeypatch.setattr("peakline.formats.open_reader", lambda _path, **_: reader)
    path = tmp_path / "fake.pb"
    path.write_bytes(b"x")
    reader.path = str(path)
    return path


def step(number, start_ms, device=None, name=None, gap_ms=0, **parts):
    """A row of ``step_breakdown``; parts in ms."""
    wall = sum(parts.values()) * MS
    return {
        "step_id": number,
        "name": f"train {number}" if name is None else name,
        "device": device,
        "start_ps": start_ms * MS,
        "end_ps": start_ms * MS + wall,
        "wall_ps": wall,
        "gap_before_ps": gap_ms * MS,
    } | {f"{part}_ps": length * MS for part, length in parts.items()}
