"""A CLIP model of random weights, small enough to be made for a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path

VISION = {"image_size": 32, "layers": 1, "width": 32, "patch_size": 16, "head_width": 16}
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 1, "layers": 1}


def make_model(folder: Path, seed: int = 0) -> str:
    """Write the model; returns what ``--clip.pretrained`` takes."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    model = open_clip.CLIP(embed_dim=24, vision_cfg=VISION, text_cfg=TEXT)
    save_file(model.state_dict(), str(folder / "open_clip_model.safetensors"))
    config = {
        "model_cfg": {"embed_dim": 24, "vision_cfg": VISION, "text_cfg": TEXT},
        "preprocess_cfg": {"size": 32, "mean": [0.5] * 3, "std": [0.5] * 3},
    }
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    return f"local-dir:{folder}"


if __name__ == "__main__":
    print(make_model(Path(sys.argv[1])))
