"""The SDXL LoRA scripts of diffusers: an ImageFolder with its metadata inside.

``train/`` is for text_to_image, which wants a row for every picture and no picture without one;
``instance/`` is for DreamBooth, which opens every file it finds. Pictures are not made square: the
scripts crop themselves and tell SDXL the original size.
"""

from __future__ import annotations

import json

from models.handoff import BundleSample
from tasks.handoff.content import TRAIN, Content, home, program

HOME = "DIFFUSERS"
PROGRAM = "examples/text_to_image/train_text_to_image_lora_sdxl.py"
DREAMBOOTH = "examples/dreambooth/train_dreambooth_lora_sdxl.py"
FOLDER, INSTANCE = "train", "instance"
VAE = "madebyollin/sdxl-vae-fp16-fix"
"""SDXL's own VAE gives NaN in half precision."""


def write(content: Content) -> None:
    """Write the bundle."""
    plan = content.plan
    content.pictures(FOLDER)
    content.pictures(INSTANCE)
    write_metadata(content)
    both = [
        "--pretrained_model_name_or_path", plan.base_model,
        *(("--pretrained_vae_model_name_or_path", VAE) if plan.precision == "fp16" else ()),
        "--resolution", plan.resolution,
        "--center_crop",
        "--train_batch_size", plan.batch_size,
        "--max_train_steps", plan.steps,
        "--checkpointing_steps", plan.save_every,
        "--resume_from_checkpoint", "latest",
        "--gradient_checkpointing",
        "--learning_rate", plan.learning_rate,
        "--lr_scheduler", "constant",
        "--snr_gamma", 5,
        "--mixed_precision", plan.precision,
        "--rank", plan.rank,
        "--validation_prompt", content.prompt,
        "--seed", plan.seed,
        "--report_to", "tensorboard",
    ]  # fmt: skip
    ask = home(HOME, "huggingface/diffusers")
    content.script(
        TRAIN,
        "SDXL LoRA with diffusers' text_to_image script. Run again, it goes on.",
        [
            "accelerate", "launch", program(HOME, PROGRAM),
            "--train_data_dir", FOLDER,
            "--image_column", "image",
            "--caption_column", "text",
            "--output_dir", "output",
            *both,
        ],
        ask,
    )  # fmt: skip
    content.script(
        "train-dreambooth.sh",
        "SDXL LoRA with diffusers' DreamBooth script: one prompt for all. Run again, it goes on.",
        [
            "accelerate", "launch", program(HOME, DREAMBOOTH),
            "--instance_data_dir", INSTANCE,
            "--instance_prompt", content.record.trigger or "an engraving",
            "--output_dir", "output-dreambooth",
            *both,
        ],
        ask,
    )  # fmt: skip


def write_metadata(content: Content) -> None:
    """Write ``metadata.jsonl`` beside the pictures, a row for each."""
    content.write(f"{FOLDER}/metadata.jsonl", "".join(map(_row, content.samples)))


def _row(sample: BundleSample) -> str:
    row = {
        "file_name": sample.image,
        "text": sample.caption,
        "pdf": sample.pdf,
        "page_index": sample.page_index,
        "kind": sample.kind,
    }
    return json.dumps(row, ensure_ascii=False) + "\n"
