"""Answers that are held, and what was made of them."""

from peakline.engine.answers import Answer, Answers


def _never():
    raise AssertionError("it is held")


def _ask(answers, key, content=b"", make=None):
    return answers.get(key, make or (lambda: Answer(content, "json")), lambda _: True)


def test_what_was_made_of_an_answer_is_held_with_it():
    answers = Answers(10_000)
    made = _ask(answers, "a", b"content").forms.get("gzip", lambda: b"packed")
    assert _ask(answers, "a", make=_never).forms.get("gzip", _never) is made


def test_it_counts_and_the_least_used_go():
    answers = Answers(10_500)
    for key in "abc":
        _ask(answers, key, bytes(1000))
    before = answers.nbytes
    _ask(answers, "a", make=_never).forms.get("gzip", lambda: bytes(3000))
    _ask(answers, "a", make=_never)
    assert answers.nbytes == before + 3000
    _ask(answers, "c", make=_never).forms.get("gzip", lambda: bytes(2000))
    _ask(answers, "c", make=_never)
    assert _ask(answers, "b", b"new").content == b"new"
    assert _ask(answers, "a", make=_never)
    assert answers.nbytes <= 10_500


def test_what_becomes_too_large_is_not_held():
    answers = Answers(10_000)
    _ask(answers, "a", bytes(1000)).forms.get("gzip", lambda: bytes(20_000))
    assert _ask(answers, "a", make=_never).content == bytes(1000)
    assert answers.nbytes == 0
    assert _ask(answers, "a", b"new").content == b"new"
