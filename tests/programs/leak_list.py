"""A list keeps the hidden layer's activations of every step. The twin keeps those of the last.

Variants: ``late`` begins to keep at the tenth step, counts its steps from 100 and has the first
call, with the tracing of the function, inside the profile; ``functions`` has no step marks and
calls two compiled functions per step, each of which the runtime takes for a step; ``eager`` has no
step marks and no functions, so that nothing in the profile says what a step is; ``evaluation``
keeps the activations of every fourth step only.
"""

import tensorflow as tf
from network import BATCH, HIDDEN, Network, batch
from recording import Recording, arguments, tensor_bytes

STEPS = {"list": 20, "late": 24, "functions": 18, "eager": 18, "evaluation": 26}
OP = {"eager": "Relu"}


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__, *STEPS)
    variant, steps = chosen.variant, STEPS[chosen.variant]
    first = 100 if variant == "late" else 0
    begins = 10 if variant == "late" else 0
    every = 4 if variant == "evaluation" else 1
    network = Network()
    train = network.step if variant == "eager" else tf.function(network.step)
    evaluate = tf.function(lambda inputs: tf.reduce_mean(network.forward(inputs)[1]))
    recording = Recording(chosen.output, marked=variant not in {"functions", "eager"})
    if variant != "late":
        inputs, targets = batch()
        train(inputs, targets)
        evaluate(inputs)
    retained: list[tf.Tensor] = []
    with recording.profile():
        for number in range(steps):
            with recording.step(first + number):
                inputs, targets = batch()
                loss, hidden = train(inputs, targets)
                if variant == "functions":
                    evaluate(inputs)
                if number % every == 0:
                    if chosen.healthy or number < begins:
                        retained.clear()
                    retained.append(hidden)
                del hidden
                float(loss)
                recording.holds(*retained)
    runs = {"runs_per_step": 2} if variant == "functions" else {}
    if chosen.healthy:
        recording.tell(**runs)
        return
    recording.tell(
        {
            "kind": "leak",
            "op": OP.get(variant, "model/hidden/MatMul"),
            "data_type": "float",
            "shape": f"[{BATCH},{HIDDEN}]",
            "bytes_per_step": tensor_bytes(retained[-1]) // every,
            "every": every,
            "first_step": begins,
            "steps": steps - begins,
            "total_bytes": tensor_bytes(*retained),
        },
        **runs,
    )


if __name__ == "__main__":
    main()
