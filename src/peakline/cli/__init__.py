"""The command line: one module per verb, and what the verbs share.

A verb is a function that Click makes a command: its options and its docstring are its help. It
opens what it reads, prints its answer on standard output, and raises for everything else: `main`
turns errors into one line and an exit code. Heavy libraries are imported inside the functions that
need them.
"""
