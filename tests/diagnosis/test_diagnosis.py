"""Every recorded pair: its fault is named, and its twin is not warned of anything."""

import pytest

from tests.diagnosis.scoring import names, pair_of, score

MISSED = {
    "jax_galaxy_experiment", "tf_dqn_agent", "torch_bird_accuracy", "torch_coin_teacher",
    "torch_recipe_words",
}  # fmt: skip
"""A heap does not say which outputs of one call are weights, slots of the optimizer or gradients.
TensorFlow copies a variable on its next write, under the name of that write: nothing records that
the old content is a snapshot. That a model runs twice in a step, that nobody needs the gradients of
a teacher, or the logits of most words, is what the program is for."""
ADVISED = {"tf_starfish_turns", "torch_micro_batches"}
"""A saving names it, and no finding."""
ALARMED = {"tf_topics_validation"}
"""The healthy program waits for its input too, for half of its short steps."""
UNSAID = {
    "jax_eager_optimizer", "tf_news_ranker", "tf_recipe_words", "tf_speech_clips",
    "tf_topics_validation", "torch_checkpoint_callback",
}  # fmt: skip
"""Named, but not with the number or the line that is expected."""


def test_two_thirds_are_held_out():
    held_out = [name for name in names() if pair_of(name).is_held_out]
    assert len(names()) >= 60
    assert len(held_out) >= 2 * (len(names()) - len(held_out))


@pytest.mark.parametrize("name", names())
def test_a_pair(name):
    found = score(name)
    assert found.verdict == (
        "MISSED" if name in MISSED else "ADVICE" if name in ADVISED else "SAID"
    )
    assert bool(found.alarms) == (name in ALARMED), found.alarms
    # Both are None where nothing is expected.
    is_unsaid = found.line is False or found.magnitude is False
    assert is_unsaid == (name in UNSAID), found.said
