"""TensorFlow's own capture client. Runs in the peers' environment, without Peakline.

    python trace_client.py trace SERVICE LOGDIR DURATION_MS WORKERS ATTEMPTS
    python trace_client.py monitor SERVICE

Writes one JSON document as the last line: the text of the error that the client raises, or null.
"""

import json
import sys

import tensorflow as tf  # type: ignore[import-not-found]

CLIENT = tf.profiler.experimental.client


def main() -> None:
    verb, *words = sys.argv[1:]
    error = None
    try:
        if verb == "monitor":
            CLIENT.monitor(words[0], 200, 2)
        else:
            service, logdir, duration_ms, workers, attempts = words
            CLIENT.trace(service, logdir, int(duration_ms), workers, int(attempts))
    except (tf.errors.OpError, RuntimeError) as raised:
        error = str(raised)
    sys.stdout.write(f"\n{json.dumps(error)}\n")


if __name__ == "__main__":
    main()
