"""Everything of Peakline that is compiled: typed Cython in Python's own syntax.

One module per subject; functions over buffers, which take their outputs from the caller and keep
nothing. docs/kernels.md says how one is written, built and tested.
"""
