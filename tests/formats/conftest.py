import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes a file, in the place of one of its name, and gives its path."""

    def write_file(data, name="profile"):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        return path

    return write_file
