"""Training of the ``layout`` network; needs torch, and nothing else in the project imports it."""
