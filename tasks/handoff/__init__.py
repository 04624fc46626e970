"""The hand-off: buckets before anything is written, then a bundle for each trainer."""
