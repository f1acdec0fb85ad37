"""What a message about an unknown name ends in."""

from peakline.suggest import near, there_is
from tests.each_row import each_row

TOOLS = ["graph", "memory_profile", "memory_findings", "op_stats", "trace_viewer"]


@each_row(
    ("name", "found"),
    [
        ("memory_profil", "memory_profile"),
        ("Memory_Profile", "memory_profile"),
        ("opstats", "op_stats"),
        ("viewer", "trace_viewer"),
        ("grpah", "graph"),
    ],
)
def test_the_nearest_name_comes_first(name, found):
    assert near(name, TOOLS)[0] == found


@each_row("name", ["", "zzz", "xy"])
def test_nothing_is_near_to_what_is_unlike_all(name):
    assert near(name, TOOLS) == []
    assert there_is(name, TOOLS) == f"; there is: {', '.join(TOOLS)}"


VERBS = (
    "summary memory steps ops programs fit trace demo diff check view report export sql tool graph"
    " sessions capture serve"
).split()


@each_row(
    ("name", "found"),
    [
        ("s", []),
        ("slq", ["sql"]),
        ("pos", ["ops"]),
        ("op", ["ops"]),
        ("fti", ["fit"]),
        ("opss", ["ops"]),
        ("dif", ["diff"]),
        ("step", ["steps"]),
        ("mem", ["memory"]),
        ("summry", ["summary"]),
        ("top", []),
        ("sum", ["summary"]),
        ("log", []),
        ("run", []),
        ("peak", []),
        ("time", []),
        ("stat", []),
    ],
)
def test_a_short_name_is_near_to_its_misspellings_alone(name, found):
    assert near(name, VERBS) == found


def test_a_suggestion_stands_before_the_list():
    assert there_is("lss", ["loss", "rate"]) == "; did you mean 'loss'? there is: loss, rate"
    assert there_is("loss", []) == "; there is: none"


def test_of_many_names_the_near_ones_are_enough():
    many = [f"op_{number}" for number in range(100)] + ["loss"]
    assert there_is("los", many) == "; did you mean 'loss'?"
    assert there_is("zzz", many).endswith(", op_19 and 81 more")


def test_foreign_names_are_fit_for_a_line():
    assert there_is("b\x1bad", ["b\x1bad\n"]) == (
        "; did you mean 'b\\x1bad\\n'? there is: b\\x1bad\\n"
    )
    assert there_is("é", ["", "größe"]) == '; there is: "", größe'
    assert near("x" * 10**6, ["x" * 10**6]) == ["x" * 10**6]
