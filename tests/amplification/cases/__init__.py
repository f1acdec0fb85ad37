"""The worst inputs that are known, by format: each a function of the size that it is to have."""
