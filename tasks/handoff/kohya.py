"""kohya-ss/sd-scripts: pictures and captions in one folder, a TOML that names it.

Left to its defaults, sd-scripts looks for ``.caption`` files, makes no buckets, and none longer
than 1024 pixels. It refuses keys it does not know, and caching of text encoders together with
training them.
"""

from __future__ import annotations

import json

from tasks.handoff.content import IMAGES, TRAIN, Content, Shell, home, program

HOME, PROGRAM = "SD_SCRIPTS", "sdxl_train_network.py"
LAST_STATE = """resume=()
state=$(ls -t output/*-state/random_states_0.pkl 2>/dev/null | head -n 1 || true)
if [ -n "$state" ]; then resume=(--resume "${state%/*}" --skip_until_initial_step); fi
"""
"""The newest state that is whole: accelerate writes the random states last. By time, not by number:
a resumed training counts from where its epoch began. Without the second option it would begin at
step 0 with the state's weights."""


def write(content: Content) -> None:
    """Write the bundle."""
    plan = content.plan
    content.pictures(IMAGES, sidecars=True)
    content.write(
        "dataset.toml",
        _toml("[general]", {
            "caption_extension": ".txt",
            "enable_wildcard": False,
            "shuffle_caption": False,
            "keep_tokens": 1,
            "flip_aug": False,
        })
        + _toml("[[datasets]]", {
            "resolution": [plan.resolution, plan.resolution],
            "batch_size": plan.batch_size,
            "enable_bucket": True,
            # It must not be larger than the resolution.
            "min_bucket_reso": min(256, plan.resolution),
            "max_bucket_reso": 2048,
            "bucket_reso_steps": plan.step,
            "bucket_no_upscale": True,
        })
        + _toml("[[datasets.subsets]]", {"image_dir": IMAGES, "num_repeats": plan.repeats}),
    )  # fmt: skip
    content.script(
        TRAIN,
        "SDXL LoRA with kohya-ss/sd-scripts. Run again, it goes on from the last saved state.",
        [
            "accelerate", "launch", program(HOME, PROGRAM),
            "--pretrained_model_name_or_path", plan.base_model,
            "--dataset_config", "dataset.toml",
            "--output_dir", "output",
            "--output_name", "lora",
            "--save_model_as", "safetensors",
            "--network_module", "networks.lora",
            "--network_dim", plan.rank,
            "--network_alpha", plan.alpha,
            # The text encoders' outputs can be cached only if they are not trained.
            "--network_train_unet_only",
            "--cache_text_encoder_outputs",
            "--cache_latents",
            "--cache_latents_to_disk",
            "--learning_rate", plan.learning_rate,
            "--optimizer_type", "AdamW",
            "--lr_scheduler", "constant",
            "--min_snr_gamma", 5,
            "--max_train_steps", plan.steps,
            "--save_every_n_steps", plan.save_every,
            "--save_state",
            "--mixed_precision", plan.precision,
            "--no_half_vae",
            "--gradient_checkpointing",
            "--sdpa",
            "--seed", plan.seed,
            Shell('${resume[@]+"${resume[@]}"}'),
        ],
        home(HOME, "kohya-ss/sd-scripts") + LAST_STATE,
    )  # fmt: skip


def _toml(head: str, values: dict[str, object]) -> str:
    """A table; strings, numbers, booleans and lists are written as in JSON."""
    return "\n".join([head, *(f"{key} = {json.dumps(v)}" for key, v in values.items()), "", ""])
