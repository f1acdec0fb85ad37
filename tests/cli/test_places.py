"""A path in a verb's place, and what is near to a verb or a path that does not exist."""

import shutil
import sys
from io import BytesIO, TextIOWrapper

import pytest
from tests.each_row import each_row

from peakline.cli.main import app


@pytest.fixture
def here(root, tmp_path, monkeypatch):
    """The current directory: a profile under several names."""
    sample = root / "tests/data/programs/late_slot_healthy.xplane.pb.gz"
    for name in ("run.xplane.pb", "größe ☃.pb", "-dash.pb", "report/host.xplane.pb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(sample, tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "steps").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


pytestmark = pytest.mark.usefixtures("here")


@each_row("path", ["run.xplane.pb", "./report", "größe ☃.pb", "report/host.xplane.pb"])
def test_a_path_in_a_verbs_place_is_summarised(peakline, path):
    run, wanted = peakline(path), peakline("summary", path)
    assert run.out
    assert run == wanted


def test_options_follow_the_path(peakline):
    assert peakline("run.xplane.pb", "--json") == peakline("summary", "run.xplane.pb", "--json")
    assert peakline("--debug", "run.xplane.pb", "--json").out.startswith("{")
    run = peakline("run.xplane.pb", "--jsno")
    assert (run.code, run.out) == (2, "")
    assert "No such option" in run.err
    assert "--json" in run.err
    assert "see peakline summary --help" in run.err


def test_standard_input(peakline, here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO((here / "run.xplane.pb").read_bytes())))
    run = peakline("-", "--json")
    assert run.code == 0
    assert '"-"' in run.out


def test_a_url_in_a_verbs_place(peakline, here):
    run = peakline(f"file://{here}/run.xplane.pb", "--json")
    assert (run.code, run.out[0]) == (0, "{")
    run = peakline("memory://nothing/here")
    assert (run.code, run.out) == (3, "")


@each_row("path", ["empty", "steps/inside"])
def test_a_place_without_a_profile_is_no_usage_error(peakline, path):
    run = peakline(path)
    assert (run.code, run.out) == ((3 if path == "empty" else 2), "")
    assert run.err.count("\n") == 1


def test_a_verb_always_wins(peakline, here):
    run = peakline("report")
    assert (run.code, run.out) == (2, "")
    assert "report is a command" in run.err
    assert "peakline ./report" in run.err
    (here / "report/host.xplane.pb").unlink()
    (here / "report").rmdir()
    assert "Missing argument 'PATH'" in peakline("report").err


@each_row(
    ("word", "meant"),
    [
        ("sumary", "did you mean summary?"),
        ("sesions", "did you mean sessions?"),
        ("run.xplane.bp", "did you mean run.xplane.pb?"),
        ("reprot", "did you mean report or ./report?"),
        ("report/hots.xplane.pb", "did you mean report/host.xplane.pb?"),
    ],
)
def test_an_unknown_word_is_a_usage_error_that_names_the_near(peakline, word, meant):
    run = peakline(word)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert f"No such command or file '{word}'" in run.err
    assert meant in run.err


def test_nothing_is_suggested_where_nothing_is_near(peakline):
    assert peakline("qqq").err == ("peakline: No such command or file 'qqq'; see peakline --help\n")


TAKES_A_PATH = ["summary", "memory", "steps", "ops", "programs", "fit", "trace", "graph"]


@each_row("verb", TAKES_A_PATH)
def test_a_path_that_does_not_exist_is_answered_with_the_near(peakline, verb):
    run = peakline(verb, "run.xplan.pb")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "run.xplan.pb: no such file or directory; did you mean run.xplane.pb?" in run.err


def test_of_several_paths_the_wrong_one_is_named(peakline):
    run = peakline("diff", "run.xplane.pb", "rum.xplane.pb")
    assert run.code == 3
    assert "rum.xplane.pb: no such file or directory; did you mean run.xplane.pb?" in run.err


def test_a_directory_that_does_not_exist(peakline):
    run = peakline("sessions", "reporst")
    assert run.code == 3
    assert "did you mean report?" in run.err


@each_row("verb", app.list_commands(None))
def test_an_unknown_option_is_answered_with_the_near(peakline, verb):
    run = peakline(verb, "--hlep")
    assert (run.code, run.err.count("\n")) == (2, 1)
    assert "--help" in run.err


@each_row(
    ("words", "meant"),
    [
        ("ops run.xplane.pb --sort slef", "did you mean 'self'?; see peakline ops --help"),
        ("ops run.xplane.pb --sort x", "; see peakline ops --help"),
        ("sql run.xplane.pb x --format jsn", "did you mean 'json'?"),
        ("tool op_stats run.xplane.pb -p view=scop", "not 'scop'; did you mean 'scope'?"),
        ("tool op_stats run.xplane.pb -p veiw=op", "no parameter 'veiw'; did you mean 'view'"),
        ("tool op_stats run.xplane.pb --format jsn", "did you mean 'json'"),
        ("tool opstats run.xplane.pb", "did you mean 'op_stats'"),
        ("export run.xplane.pb --to prefetto -o x", "did you mean 'perfetto'"),
        ("memory run.xplane.pb --allocator bfc_cpu", "did you mean 'bfc_cpu_allocator_for_gpu'"),
        ("memory run.xplane.pb --step trian", "did you mean 'train"),
        ("fit run.xplane.pb --set alow_growth=1", "did you mean 'allow_growth'"),
        ("trace run.xplane.pb --line nowhere", "no line called 'nowhere'; there is: "),
    ],
)
def test_a_name_is_answered_with_the_near(peakline, words, meant):
    run = peakline(*words.split())
    assert run.code in {1, 2, 3}
    assert (run.out, run.err.count("\n")) == ("", 1)
    assert meant in run.err


def test_a_link_that_points_nowhere_is_not_suggested_for_itself(peakline, here):
    (here / "dangling").symlink_to("nowhere")
    run = peakline("memory", "dangling")
    assert run.err == "peakline: dangling: no such file or directory: the link points nowhere\n"


@each_row(
    ("words", "message"),
    [
        (
            "memory run.xplane.pb --alocator x",
            "No such option '--alocator'; did you mean --allocator?",
        ),
        ("memory run.xplane.pb -z", "No such option '-z'; see peakline memory --help"),
        (
            "--json run.xplane.pb",
            "No such option '--json'; options stand behind the command or PATH",
        ),
        ("--verison", "No such option '--verison'; did you mean --version?"),
        ("memory run.xplane.pb --session", "requires an argument; see peakline memory --help"),
    ],
)
def test_an_option_that_does_not_exist(peakline, words, message):
    run = peakline(*words.split())
    assert (run.code, run.out) == (2, "")
    assert message in run.err
