"""One module for each pair: ``PAIR``, what is planted, and ``record``, the program itself."""
