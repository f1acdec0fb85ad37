"""Events files: the TFRecord files that summary writers leave for TensorBoard."""
