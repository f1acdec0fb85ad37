"""What the programs of the peers' environment share: a request a line in, an answer a line out."""

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def serve(answer: Callable[[Any], Any]) -> None:
    """Give ``answer`` every request on standard input, and write what it returns or raises.

    A request that is a text is answered with the version of that package. What libraries print
    goes to standard error.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            reply = {"answer": version(request) if isinstance(request, str) else answer(request)}
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the answer)
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)
