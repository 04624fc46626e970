"""Captions: who writes them, how they are edited, and what keeps them fit for every trainer."""
