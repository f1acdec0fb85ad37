"""XSpace files, the profiles that JAX, TensorFlow and PyTorch/XLA write."""
