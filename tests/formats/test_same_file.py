"""A file that comes by another way has the same answers, but for its name."""

import gzip
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.formats.format_damage import damaged, dice
from tests.formats.format_samples import ALL, ONE_OF_EACH, texts_of_programs
from tests.formats.same_file import Reading, differences

import peakline

DATA = Path(__file__).parent.parent / "data"
SAMPLES = (*ALL, *texts_of_programs(DATA))
FORMATS = sorted({sample.format for sample in SAMPLES})


@pytest.fixture
def reading(tmp_path):
    return Reading(tmp_path)


@pytest.mark.parametrize(
    "samples",
    [
        [ONE_OF_EACH[name] for name in ("hlo_text", "torch_snapshot", "xplane")],
        pytest.param(SAMPLES, marks=pytest.mark.nightly),
    ],
    ids=["some", "all"],
)
def test_whole_files(reading, samples):
    for sample in samples:
        answers = reading.answers(sample.name, sample.file)
        # Of a program's values over time alone, without the program, there is nothing to say.
        is_alone = sample.name == "live-range.txt"
        assert ("error" in answers["path"], len(answers)) == (is_alone, 4 if is_alone else 5)
        assert not differences(answers), sample.name


@pytest.mark.parametrize(
    "numbers",
    [
        range(6),
        pytest.param(range(6, 200), marks=pytest.mark.nightly),
        pytest.param(range(200, 2000), marks=pytest.mark.soak),
    ],
    ids=["some", "many", "most"],
)
def test_damaged_files(reading, numbers):
    for n in numbers:
        rng = dice(4404, n)
        form = rng.choice(FORMATS)
        sample = rng.choice([one for one in SAMPLES if one.format == form])
        assert not differences(reading.answers(sample.name, damaged(rng, sample))), n


def _name(path):
    with peakline.open(str(path)) as profile:
        return profile.programs().label(0)


@each_row(
    ("file", "name"),
    [
        ("hlo/module_0008.jit_rematerialise_features.cpu_after_optimizations.hlo.pb",
         "jit_rematerialise_features(8)"),
        ("xla_dump/module_0002.jit_image.before_optimizations.hlo.pb", "jit_image(2)"),
    ],
)  # fmt: skip
def test_a_program_has_its_own_number(tmp_path, file, name):
    """Whatever its file is called."""
    data = (DATA / file).read_bytes()
    places = {
        Path(file).name: data, f"{Path(file).name}.gz": gzip.compress(data), "a.pb": data,
        "module_0077.other.gpu_after_optimizations.hlo.pb": data, "other.hlo_proto.pb": data,
    }  # fmt: skip
    for place, content in places.items():
        (tmp_path / place).write_bytes(content)
        assert _name(tmp_path / place) == name
    # These say how events name it.
    for place in ("x(5).hlo_proto.pb", "module_0008.x.tpu_after_optimizations.hlo.pb"):
        (tmp_path / place).write_bytes(data)
    assert _name(tmp_path / "x(5).hlo_proto.pb") == name.partition("(")[0] + "(5)"
    assert "(" not in _name(tmp_path / "module_0008.x.tpu_after_optimizations.hlo.pb")


def test_a_text_has_the_number_in_its_name(tmp_path):
    """It says none itself."""
    file = DATA / "xla_dump" / "module_0002.jit_image.cpu_after_optimizations.txt"
    packed = tmp_path / f"{file.name}.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert _name(packed) == _name(file) == "jit_image(2)"
