"""Calibration: what the methods make of a sample of an archive, for a person to look at."""
