"""Files on which fuzzing once failed: each is answered, or refused in one line."""

from pathlib import Path
from random import Random

import pytest
from tests.sources.format_checks import all_verbs, ask_everything, run_verb

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
FILES = sorted(path for path in CORPUS.iterdir() if path.suffix != ".md")
WHOLE = Path(__file__).parent.parent / "data" / "graph_def" / "frozen.pb"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_answered_or_refused(file, tmp_path):
    path = tmp_path / file.name
    path.write_bytes(file.read_bytes())
    ask_everything(path, Random(1))
    for words in all_verbs(path, WHOLE):
        run_verb(words)
