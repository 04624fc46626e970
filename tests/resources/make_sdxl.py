"""Make a tiny SDXL from configurations alone: the real classes with random weights.

python -m tests.resources.make_sdxl FOLDER

It has what the large one has (two text encoders, a VAE, a U-Net with size conditioning) at a size a
test can train: 2 million parameters beside the vocabulary. CLIP's vocabulary comes with open_clip.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

TOKENS = 49408


def make_tokenizer(folder: Path) -> None:
    """CLIP's tokenizer, from open_clip's file of byte pairs, as transformers wants it."""
    import open_clip
    from open_clip.tokenizer import bytes_to_unicode
    from transformers import CLIPTokenizer

    source = Path(open_clip.__file__).with_name("bpe_simple_vocab_16e6.txt.gz")
    merges = gzip.decompress(source.read_bytes()).decode().split("\n")[1 : 49152 - 256 - 2 + 1]
    letters = list(bytes_to_unicode().values())
    words = [*letters, *(f"{letter}</w>" for letter in letters)]
    words += ["".join(merge.split()) for merge in merges]
    words += ["<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer.model_max_length = 77
    tokenizer.save_pretrained(folder)


def make(folder: Path, seed: int = 1885) -> Path:
    """Make the model.

    Args:
        folder: Where to put it.
        seed: Of the weights.
    """
    import torch
    from diffusers import (
        AutoencoderKL,
        EulerDiscreteScheduler,
        StableDiffusionXLPipeline,
        UNet2DConditionModel,
    )
    from transformers import (
        CLIPTextConfig,
        CLIPTextModel,
        CLIPTextModelWithProjection,
        CLIPTokenizer,
    )

    make_tokenizer(folder / "tokenizer")
    tokenizer = CLIPTokenizer.from_pretrained(folder / "tokenizer")
    torch.manual_seed(seed)
    text = {
        "vocab_size": TOKENS, "hidden_size": 16, "intermediate_size": 32, "projection_dim": 16,
        "num_hidden_layers": 2, "num_attention_heads": 2, "bos_token_id": TOKENS - 2,
        "eos_token_id": TOKENS - 1, "pad_token_id": 1,
    }  # fmt: skip
    unet = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4),
        norm_num_groups=8,
        cross_attention_dim=32,
        transformer_layers_per_block=(1, 2),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=16 + 6 * 8,
    )
    vae = AutoencoderKL(
        block_out_channels=(16, 16, 32, 32),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        norm_num_groups=8,
        latent_channels=4,
        sample_size=64,
    )
    StableDiffusionXLPipeline(
        vae=vae,
        text_encoder=CLIPTextModel(CLIPTextConfig(**text)),
        text_encoder_2=CLIPTextModelWithProjection(CLIPTextConfig(**text)),
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=unet,
        scheduler=EulerDiscreteScheduler(
            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1
        ),
    ).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]))
