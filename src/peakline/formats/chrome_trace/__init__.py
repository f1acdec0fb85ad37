"""Chrome traces (JSON): PyTorch's profiler, JAX, TensorFlow's timeline, Chrome and many others."""
