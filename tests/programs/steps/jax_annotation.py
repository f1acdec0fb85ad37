"""Every step is inside a ``TraceAnnotation``, which has a name and no number."""

from functools import partial

import jax
from account import Account, output
from in_jax import profile
from jax_two_functions import gradient, updated

STEPS = 8


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('TraceAnnotation("train_step")')
    weights = jax.random.normal(jax.random.key(1), (128, 128))
    inputs = jax.random.normal(jax.random.key(2), (256, 128))
    weights = jax.block_until_ready(updated(weights, gradient(weights, inputs)))
    with profile(account, file):
        for _ in range(STEPS):
            with account.step(
                "train_step", None, partial(jax.profiler.TraceAnnotation, "train_step")
            ):
                weights = updated(weights, gradient(weights, inputs))
                jax.block_until_ready(weights)
    account.tell()


if __name__ == "__main__":
    main()
