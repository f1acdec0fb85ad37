"""The profile is stopped in the middle of the sixth step, after one of its two functions."""

from functools import partial

import jax
from account import Account, output
from in_jax import profile
from jax_two_functions import gradient, updated

STEPS = 6


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('StepTraceAnnotation("train", step_num=i)')
    weights = jax.random.normal(jax.random.key(1), (128, 128))
    inputs = jax.random.normal(jax.random.key(2), (256, 128))
    weights = jax.block_until_ready(updated(weights, gradient(weights, inputs)))
    with profile(account, file) as stop:
        for number in range(STEPS):
            is_last = number == STEPS - 1
            more = {"cut_off": True} if is_last else {}
            mark = partial(jax.profiler.StepTraceAnnotation, "train", step_num=number)
            with account.step("train", number, mark, **more):
                step = jax.block_until_ready(gradient(weights, inputs))
                if is_last:
                    stop()
                weights = jax.block_until_ready(updated(weights, step))
    account.tell()


if __name__ == "__main__":
    main()
