"""The command line: one module per verb, and what the verbs share.

A verb is a function that Click makes a command: its options and its docstring are its help. It
opens what it reads, prints its answer on standard output, and raises for everything else: `main`
turns errors into one line and an exit code. What is heavy is reached through the
doors of rooms (``findings.answer_time``), which import it on first use.
"""

COMPLETE = "_PEAKLINE_COMPLETE"
"""The variable of the environment in which a shell's script says that it completes words."""
