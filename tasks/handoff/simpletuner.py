"""bghira/SimpleTuner: data backends, one of them for text embeddings, and a configuration.

``repeats`` counts the times after the first. It splits captions at line ends unless told not to,
and can delete pictures that do not suit it, which we never ask for. It trains in bf16.
"""

from __future__ import annotations

import json

from tasks.handoff.content import IMAGES, TRAIN, Content

BACKENDS, CONFIG = "config/multidatabackend.json", "config/config.json"


def write(content: Content) -> None:
    """Write the bundle."""
    plan = content.plan
    backends = [
        {
            "id": "intaglio",
            "type": "local",
            "dataset_type": "image",
            "instance_data_dir": IMAGES,
            "caption_strategy": "textfile",
            "disable_multiline_split": True,
            "metadata_backend": "discovery",
            "resolution": plan.resolution,
            "resolution_type": "pixel_area",
            "crop": True,
            "crop_style": "center",
            "crop_aspect": "preserve",
            "cache_dir_vae": "output/cache/vae",
            "repeats": plan.repeats - 1,
        },
        {
            "id": "text-embeds",
            "dataset_type": "text_embeds",
            "default": True,
            "type": "local",
            "cache_dir": "output/cache/text",
        },
    ]
    config = {
        "model_family": "sdxl",
        "model_type": "lora",
        "pretrained_model_name_or_path": plan.base_model,
        "data_backend_config": BACKENDS,
        "output_dir": "output",
        "lora_rank": plan.rank,
        "lora_alpha": plan.alpha,
        "max_train_steps": plan.steps,
        "num_train_epochs": 0,
        "checkpointing_steps": plan.save_every,
        "resume_from_checkpoint": "latest",
        "resolution": plan.resolution,
        "resolution_type": "pixel_area",
        "aspect_bucket_alignment": plan.step,
        "train_batch_size": plan.batch_size,
        "gradient_checkpointing": True,
        "learning_rate": plan.learning_rate,
        "lr_scheduler": "constant",
        "optimizer": "adamw_bf16",
        "mixed_precision": "bf16",
        "snr_gamma": 5,
        "validation_prompt": content.prompt,
        "seed": plan.seed,
    }
    content.pictures(IMAGES, sidecars=True)
    content.write(BACKENDS, json.dumps(backends, indent=2))
    content.write(CONFIG, json.dumps(config, indent=2, ensure_ascii=False))
    content.script(
        TRAIN,
        "SDXL LoRA with SimpleTuner (pip install simpletuner). Run again, it goes on.",
        ["simpletuner", "train"],
    )
