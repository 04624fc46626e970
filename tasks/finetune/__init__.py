"""Training a CLIP model on image-text pairs with open_clip's own trainer."""
