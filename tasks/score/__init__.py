"""Scoring: how pure and how representative a dataset is, and what does not belong in it."""
