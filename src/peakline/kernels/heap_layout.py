"""Kinds of events of a compiled program's heap (``HeapSimulatorTrace.Event.Kind``)."""

ALLOCATE = 0
FREE = 1
SHARE = 2
