"""CLIP: one wrapper over open_clip, made when first used and given back on request.

Importing this package loads neither torch nor open_clip (the ``clip`` extra); using an engine does.
"""
