"""ostris/ai-toolkit: pictures and captions in one folder, one YAML for everything.

It reads WebP badly, and fills in ``[trigger]`` in captions; ours have the trigger itself, and no
square brackets.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from models.errors import BadSettings
from models.handoff import BundleSample
from tasks.handoff.content import IMAGES, TRAIN, Content, home, program

HOME, PROGRAM = "AI_TOOLKIT", "run.py"
READS = ("jpg", "jpeg", "png")


def check(samples: Sequence[BundleSample]) -> None:
    """Refuse what it cannot read.

    Raises:
        BadSettings: The pictures are WebP.
    """
    for sample in samples:
        if sample.image.rpartition(".")[2] not in READS:
            raise BadSettings(
                f"trainers: ai-toolkit does not read {sample.file_name}.",
                "Extract with --encode.format jpeg or png, or name the other --trainers.",
            )


def write(content: Content) -> None:
    """Write the bundle."""
    plan = content.plan
    dtype = {"fp16": "float16", "bf16": "bf16"}[plan.precision]
    process = {
        "type": "sd_trainer",
        "training_folder": "output",
        "device": "cuda:0",
        "trigger_word": content.record.trigger,
        "network": {"type": "lora", "linear": plan.rank, "linear_alpha": plan.alpha},
        "save": {"dtype": "float16", "save_every": plan.save_every, "max_step_saves_to_keep": 4},
        "datasets": [
            {
                "folder_path": IMAGES,
                "caption_ext": "txt",
                "caption_dropout_rate": 0.0,
                "shuffle_tokens": False,
                "cache_latents_to_disk": True,
                "num_repeats": plan.repeats,
                "buckets": True,
                "bucket_tolerance": plan.step,
                "resolution": [plan.resolution],
            }
        ],
        "train": {
            "batch_size": plan.batch_size,
            "steps": plan.steps,
            "gradient_accumulation_steps": 1,
            "train_unet": True,
            "train_text_encoder": False,
            "gradient_checkpointing": True,
            "noise_scheduler": "ddpm",
            "optimizer": "adamw8bit",
            "lr": plan.learning_rate,
            "dtype": dtype,
        },
        "model": {"name_or_path": plan.base_model, "arch": "sdxl"},
        "sample": {
            "sampler": "ddpm",
            "sample_every": plan.save_every,
            "width": plan.resolution,
            "height": plan.resolution,
            "prompts": [content.prompt],
            "neg": "",
            "seed": plan.seed,
            "walk_seed": False,
            "guidance_scale": 6,
            "sample_steps": 25,
        },
    }
    config = {
        "job": "extension",
        "config": {"name": "lora", "process": [process]},
        "meta": {"name": "[name]", "version": "1.0"},
    }
    content.pictures(IMAGES, sidecars=True)
    content.write("config.yaml", yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
    content.script(
        TRAIN,
        "SDXL LoRA with ostris/ai-toolkit. Run again, it goes on from its last save.",
        ["python", program(HOME, PROGRAM), "config.yaml"],
        home(HOME, "ostris/ai-toolkit"),
    )
