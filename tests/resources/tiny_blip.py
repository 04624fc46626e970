"""A BLIP model of random weights, small enough to be made for a test: the real classes."""

from __future__ import annotations

import string
from pathlib import Path

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = string.ascii_lowercase
TOWER = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip


def make_blip(folder: Path, seed: int = 0) -> Path:
    """Write the model as ``from_pretrained`` reads it.

    Args:
        folder: Where to put it.
        seed: Of the weights.
    """
    import torch
    from transformers import (
        BertTokenizer,
        BlipConfig,
        BlipForConditionalGeneration,
        BlipImageProcessor,
        BlipProcessor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    words = [*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = BertTokenizer(str(folder / "vocab.txt"))
    # The token a sentence begins with is none of the tokenizer's, as in the large ones.
    begin, end = len(words), words.index("[SEP]")
    torch.manual_seed(seed)
    text = {
        "vocab_size": len(words) + 1, "bos_token_id": begin, "eos_token_id": end,
        "sep_token_id": end, "pad_token_id": 0, "encoder_hidden_size": 16, "projection_dim": 16,
        "max_position_embeddings": 64, "initializer_range": 1.0,
    }  # fmt: skip
    vision = {"image_size": 32, "patch_size": 16, "initializer_range": 1.0}
    config = BlipConfig(text_config=TOWER | text, vision_config=TOWER | vision)
    BlipForConditionalGeneration(config).save_pretrained(folder)
    images = BlipImageProcessor(size={"height": 32, "width": 32})
    BlipProcessor(images, tokenizer).save_pretrained(folder)
    return folder
