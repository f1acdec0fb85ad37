"""HLO text as HloProto, compared field by field with what XLA's own parser makes of it."""

import subprocess
from pathlib import Path

import pytest

from peakline.formats.hlo_text.module import translate_module
from peakline.schema import HloModuleProto, HloProto
from tests.conformance.hlo_texts import TEXTS
from tests.conformance.peer import PROGRAMS, peers_python
from tests.each_row import each_row
from tests.sources.hlo_odd_texts import ODD
from tests.sources.hlo_same import differences

pytestmark = pytest.mark.conformance

ALL = ODD | {f"cost_{name}": text for name, text in TEXTS.items()}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory, root):
    """The messages that XLA makes of all texts, those of the dumps included."""
    folder = tmp_path_factory.mktemp("texts")
    dumps = sorted((root / "tests" / "data" / "xla_dump").glob("*_optimizations.txt"))
    texts = [*ALL.values(), *(path.read_text() for path in dumps)]
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "hlo_of_texts.py"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    names = [*ALL, *(path.name for path in dumps)]
    return {name: Path(folder / f"{number}.hlo") for number, name in enumerate(names)}


def _same(path):
    upstream = HloModuleProto.FromString(path.read_bytes())
    data, losses = translate_module(path.with_suffix(".txt").read_bytes())
    assert losses.entries() == []
    assert differences(upstream, HloProto.FromString(data).hlo_module) == []


@each_row("name", ALL)
def test_a_text_is_what_xla_makes_of_it(parsed, name):
    _same(parsed[name])


def test_a_dump_is_what_xla_makes_of_it(parsed):
    dumps = [path for name, path in parsed.items() if name not in ALL]
    assert len(dumps) == 8
    for path in dumps:
        _same(path)
