"""What the program's exit codes mean: one policy for every verb, in its help and in docs/cli.md."""

from __future__ import annotations

EXIT_CODES = {
    0: "Done.",
    1: "The answer is no: a check failed, a graph breaks a rule, a query was refused.",
    2: "Usage: an unknown verb, option, tool, target or format, a value that does not fit, a file"
    " that exists and would be replaced.",
    3: "The input cannot be read, or has no session, host, allocator or step of that name, or"
    " --strict found something lost; the output cannot be written.",
    4: "A remote host or a capture failed, or the time for it was over.",
    70: "A fault of Peakline's own; --debug shows where.",
    130: "Ended by Ctrl-C.",
    141: "Whoever read the output stopped reading.",
    143: "Ended by SIGTERM.",
}
"""A verb raises an error of `peakline.errors`, whose class has the code; nothing else ends it."""
