"""Nerogar/OneTrainer: a list of concepts, and a training configuration.

By default it flips pictures and jitters crops, which mirrors lettering and undoes the buckets. It
runs in its own folder, so it needs absolute paths; the script sets them to where the bundle lies.
"""

from __future__ import annotations

import json
from typing import Any

from tasks.handoff.buckets import RULES
from tasks.handoff.content import IMAGES, TRAIN, Content, Shell, home
from tasks.handoff.preflight import steps_an_epoch

HOME, PROGRAM = "ONETRAINER", "scripts/train.py"
CONCEPTS, CONFIG = "concepts.json", "train.json"
PATHS = {
    "concept_file_name": CONCEPTS,
    "workspace_dir": "output/workspace",
    "cache_dir": "output/cache",
    "output_model_destination": "output/lora.safetensors",
}
"""Keys of the configuration that name files of the bundle."""
RELOCATE = f"""here=$PWD
mkdir -p output
python - <<'PY'
import json, os
paths = {json.dumps(PATHS)}
concepts, config = json.load(open("{CONCEPTS}")), json.load(open("{CONFIG}"))
concepts[0]["path"] = os.path.abspath("{IMAGES}")
config.update({{key: os.path.abspath(name) for key, name in paths.items()}})
for name, data in (("{CONCEPTS}", concepts), ("{CONFIG}", config)):
    with open(name, "w") as stream:
        json.dump(data, stream, indent=2)
PY
cd "${HOME}"
"""


def write(content: Content) -> None:
    """Write the bundle."""
    plan = content.plan
    dtype = {"fp16": "FLOAT_16", "bf16": "BFLOAT_16"}[plan.precision]
    concept: dict[str, Any] = {
        "__version": 2,
        "image": {"enable_crop_jitter": False, "enable_random_flip": False},
        "text": {"prompt_source": "sample", "enable_tag_shuffling": False},
        "name": "intaglio",
        "path": IMAGES,
        "seed": plan.seed,
        "enabled": True,
        "type": "STANDARD",
        "include_subdirectories": False,
        "image_variations": 1,
        "text_variations": 1,
        "balancing": float(plan.repeats),
        "balancing_strategy": "REPEATS",
        "loss_weight": 1.0,
    }
    steps = max(1, steps_an_epoch(RULES["onetrainer"], plan, content.samples))
    encoder = {"train": False, "weight_dtype": dtype}
    config = {
        # Without it, it is taken for the oldest and brought up to date, which fails.
        "__version": 10,
        **PATHS,
        "training_method": "LORA",
        "model_type": "STABLE_DIFFUSION_XL_10_BASE",
        "base_model_name": plan.base_model,
        "output_model_format": "SAFETENSORS",
        "continue_last_backup": True,
        "aspect_ratio_bucketing": True,
        "latent_caching": True,
        "train_dtype": dtype,
        "unet": {"train": True, "weight_dtype": dtype},
        "text_encoder": encoder,
        "text_encoder_2": encoder,
        "vae": {"weight_dtype": "FLOAT_32"},
        "learning_rate": plan.learning_rate,
        "learning_rate_scheduler": "CONSTANT",
        "epochs": -(-plan.steps // steps),
        "batch_size": plan.batch_size,
        "resolution": str(plan.resolution),
        "lora_rank": plan.rank,
        "lora_alpha": float(plan.alpha),
        "save_every": plan.save_every,
        "save_every_unit": "STEP",
        "backup_after": plan.save_every,
        "backup_after_unit": "STEP",
    }
    content.pictures(IMAGES, sidecars=True)
    content.write(CONCEPTS, json.dumps([concept], indent=2))
    content.write(CONFIG, json.dumps(config, indent=2))
    content.script(
        TRAIN,
        "SDXL LoRA with Nerogar/OneTrainer. Run again, it goes on from its last backup.",
        ["python", PROGRAM, "--config-path", Shell(f'"$here/{CONFIG}"')],
        home(HOME, "Nerogar/OneTrainer") + RELOCATE,
    )
