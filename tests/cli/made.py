"""Profiles made of tables by hand, for the verbs about time to read from a path."""

from tests.tables.fake import FakeReader

MS = 10**9


def path_of(reader, monkeypatch, tmp_path):
    """A path that is read with this reader."""
    monkeypatch.setattr("peakline.formats.open_reader", lambda _path, **_: reader)
    path = tmp_path / "fake.pb"
    path.write_bytes(b"x")
    reader.path = str(path)
    return path


def made(monkeypatch, tmp_path, **tables):
    """A path that opens as a profile with these tables, each columns or a list of rows."""
    return path_of(FakeReader(tables), monkeypatch, tmp_path)


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
