"""Programs with one planted fault and their healthy twins, and what a right diagnosis says of them."""
