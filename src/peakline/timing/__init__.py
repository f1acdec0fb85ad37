"""Where a step's time goes: ops, kernels, input, breakdown, critical path, timeline."""
