"""What an export wrote, and the samples that are exported."""

import io
from pathlib import Path

import peakline
from peakline.export import Options, export

DATA = Path(__file__).parent.parent / "data"
SESSION = DATA / "sessions" / "tf2_cnn"
KINETO = DATA / "chrome_trace" / "noleak.pt.trace.json.gz"


def written(profile, target, **options):
    """The bytes of a target of one file."""
    stream = io.BytesIO()
    export(profile, target, lambda write, _name="": write(stream), Options(**options))
    return stream.getvalue()


def written_file(path, target, **options):
    with peakline.open(str(path)) as profile:
        return written(profile, target, **options)
