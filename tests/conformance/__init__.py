"""Comparisons with the software whose files and answers Peakline reproduces."""
