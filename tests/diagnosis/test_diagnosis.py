"""Every recorded pair: its fault is named, and its twin is not warned of anything.

A recording is opened once: whether its answers agree (`tests.consistency`) is asked of it too.
"""

import json
from contextlib import ExitStack

import pytest

import peakline
from tests.consistency.rules import check_all
from tests.consistency.said import Said
from tests.diagnosis.scoring import (
    FAULTY,
    HEALTHY,
    SCORED,
    answer_of_verb,
    names,
    pair_of,
    paths_of,
    score,
)
from tests.sweeps import sweep

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
BESIDE = {"torch_coin_teacher", "torch_recipe_words"}
"""Missed, but what would lower the peak most names where it lies."""
UNSAID = {
    "jax_eager_optimizer", "tf_news_ranker", "tf_recipe_words", "tf_speech_clips",
    "tf_topics_validation", "torch_checkpoint_callback",
}  # fmt: skip
"""Named, but not with the number or the line that is expected."""


def test_two_thirds_are_held_out():
    held_out = [name for name in names() if pair_of(name).is_held_out]
    assert len(names()) >= 60
    assert len(held_out) >= 2 * (len(names()) - len(held_out))


class Recordings(ExitStack):
    """The recordings of a pair, opened, and what verbs say of them."""

    def __init__(self, name):
        super().__init__()
        paths = [paths_of(name, variant)[-1] for variant in (FAULTY, HEALTHY)]
        files = [file for path in paths for file in SCORED if file.is_relative_to(path)]
        self.said = {path: Said(self.enter_context(peakline.open(path))) for path in files}

    def answer(self, verb, *paths):
        """As JSON; what is about several files together the verb itself answers."""
        if not self.said.keys() >= set(paths):
            return answer_of_verb(verb, *paths)
        said = self.said[paths[0]]
        documents = {
            "memory": lambda: said.of_memory,
            "steps": lambda: said.of_steps,
            "diff": lambda: said.compared_with(self.said[paths[-1]]),
        }
        return json.loads(json.dumps(documents[verb]()))


@pytest.mark.parametrize("name", sweep(names()))
def test_a_pair(name):
    with Recordings(name) as recordings:
        result = score(name, recordings.answer)
        for said in recordings.said.values():
            check_all(said)
    assert result.verdict == (
        "CAUSE?"
        if name in BESIDE
        else "MISSED"
        if name in MISSED
        else "ADVICE"
        if name in ADVISED
        else "SAID"
    )
    assert bool(result.alarms) == (name in ALARMED), result.alarms
    # Both are None where nothing is expected.
    assert (result.line is False or result.magnitude is False) == (name in UNSAID), result.said
