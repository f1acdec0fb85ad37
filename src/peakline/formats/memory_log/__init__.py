"""TensorFlow's memory log (log_memory.proto): what allocators did, record by record."""
