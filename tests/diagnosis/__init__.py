"""Programs with one planted fault, their healthy twins, and what a right diagnosis says."""
