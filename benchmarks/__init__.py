"""Benchmarks: speed, memory and selection quality; each is one command that prints a table."""
