"""Free memory in pieces: holes, segments and the address space."""
