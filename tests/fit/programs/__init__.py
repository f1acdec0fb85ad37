"""One module for each program: ``THREADS``, and ``run``, which runs it under the profiler."""
