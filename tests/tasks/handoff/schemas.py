"""What each trainer accepts, restated from its sources: keys, types, and options of its scripts.

A key that is not here is refused, as sd-scripts refuses it and the others ignore it in silence.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

NUMBER = (int, float)

KOHYA_SUBSET: dict[str, Any] = {
    "num_repeats": int, "shuffle_caption": bool, "caption_separator": str, "keep_tokens": int,
    "keep_tokens_separator": str, "secondary_separator": str, "enable_wildcard": bool,
    "caption_prefix": str, "caption_suffix": str, "flip_aug": bool, "color_aug": bool,
    "face_crop_aug_range": list, "random_crop": bool, "token_warmup_min": int,
    "token_warmup_step": NUMBER, "caption_dropout_rate": NUMBER,
    "caption_dropout_every_n_epochs": int, "caption_tag_dropout_rate": NUMBER,
    "custom_attributes": dict, "caption_extension": str, "alpha_mask": bool,
}  # fmt: skip
KOHYA_DATASET: dict[str, Any] = {
    "resolution": (int, list), "batch_size": int, "enable_bucket": bool, "min_bucket_reso": int,
    "max_bucket_reso": int, "bucket_reso_steps": int, "bucket_no_upscale": bool,
    "validation_split": NUMBER, "validation_seed": int, "network_multiplier": NUMBER,
    "resize_interpolation": str,
}  # fmt: skip
KOHYA_DREAMBOOTH: dict[str, Any] = {
    "image_dir": str, "class_tokens": str, "is_reg": bool, "cache_info": bool,
}  # fmt: skip
KOHYA_OPTIONS = {
    "pretrained_model_name_or_path", "dataset_config", "output_dir", "output_name",
    "save_model_as", "network_module", "network_dim", "network_alpha", "network_train_unet_only",
    "learning_rate", "unet_lr", "text_encoder_lr1", "text_encoder_lr2", "optimizer_type",
    "lr_scheduler", "max_train_steps", "max_train_epochs", "save_every_n_epochs",
    "save_every_n_steps", "save_state", "resume", "mixed_precision", "gradient_checkpointing",
    "cache_text_encoder_outputs", "cache_latents", "cache_latents_to_disk", "no_half_vae", "sdpa",
    "min_snr_gamma", "seed", "skip_until_initial_step",
}  # fmt: skip
DIFFUSERS_OPTIONS = {
    "pretrained_model_name_or_path", "pretrained_vae_model_name_or_path", "dataset_name",
    "train_data_dir", "image_column", "caption_column", "resolution", "center_crop",
    "random_flip", "train_batch_size", "num_train_epochs", "max_train_steps",
    "checkpointing_steps", "checkpoints_total_limit", "resume_from_checkpoint",
    "gradient_accumulation_steps", "gradient_checkpointing", "learning_rate", "lr_scheduler",
    "lr_warmup_steps", "snr_gamma", "mixed_precision", "rank", "noise_offset",
    "validation_prompt", "seed", "report_to", "output_dir",
}  # fmt: skip
DREAMBOOTH_OPTIONS = DIFFUSERS_OPTIONS - {"train_data_dir"} | {
    "instance_data_dir", "instance_prompt", "class_data_dir", "class_prompt",
    "with_prior_preservation",
}  # fmt: skip
AI_TOOLKIT: dict[str, Any] = {
    "type": str, "training_folder": str, "device": str, "trigger_word": str,
    "network": {"type": str, "linear": int, "linear_alpha": int},
    "save": {"dtype": str, "save_every": int, "max_step_saves_to_keep": int},
    "datasets": [{
        "folder_path": str, "dataset_path": str, "caption_ext": str, "default_caption": str,
        "trigger_word": str, "caption_dropout_rate": NUMBER, "shuffle_tokens": bool,
        "keep_tokens": int, "resolution": list, "num_repeats": int, "buckets": bool,
        "bucket_tolerance": int, "cache_latents_to_disk": bool, "is_reg": bool,
        "mask_path": str, "flip_x": bool, "network_weight": NUMBER, "loss_multiplier": NUMBER,
    }],
    "train": {
        "batch_size": int, "steps": int, "gradient_accumulation_steps": int, "train_unet": bool,
        "train_text_encoder": bool, "gradient_checkpointing": bool, "noise_scheduler": str,
        "optimizer": str, "lr": NUMBER, "dtype": str, "ema_config": dict,
    },
    "model": {"name_or_path": str, "arch": str},
    "sample": {
        "sampler": str, "sample_every": int, "width": int, "height": int, "prompts": list,
        "neg": str, "seed": int, "walk_seed": bool, "guidance_scale": NUMBER,
        "sample_steps": int,
    },
}  # fmt: skip
ONETRAINER_CONCEPT: dict[str, Any] = {
    "__version": int, "name": str, "path": str, "seed": int, "enabled": bool, "type": str,
    "include_subdirectories": bool, "image_variations": int, "text_variations": int,
    "balancing": float, "balancing_strategy": str, "loss_weight": float, "concept_stats": dict,
    "image": {
        "enable_crop_jitter": bool, "enable_random_flip": bool, "enable_fixed_flip": bool,
        "enable_random_rotate": bool, "enable_resolution_override": bool,
        "resolution_override": str, "enable_random_circular_mask_shrink": bool,
        "enable_random_mask_rotate_crop": bool,
    },
    "text": {
        "prompt_source": str, "prompt_path": str, "enable_tag_shuffling": bool,
        "tag_delimiter": str, "keep_tags_count": int,
    },
}  # fmt: skip
ONETRAINER_PART: dict[str, Any] = {"train": bool, "weight_dtype": str}
ONETRAINER_CONFIG: dict[str, Any] = {
    "training_method": str, "workspace_dir": str, "cache_dir": str, "continue_last_backup": bool,
    "__version": int, "model_type": str, "base_model_name": str, "train_dtype": str,
    "unet": ONETRAINER_PART, "text_encoder": ONETRAINER_PART, "text_encoder_2": ONETRAINER_PART,
    "vae": ONETRAINER_PART, "output_model_format": str, "output_model_destination": str,
    "concept_file_name": str, "aspect_ratio_bucketing": bool, "latent_caching": bool,
    "learning_rate": float, "learning_rate_scheduler": str, "epochs": int, "batch_size": int,
    "resolution": str, "lora_rank": int, "lora_alpha": float, "backup_after": int,
    "backup_after_unit": str, "save_every": int, "save_every_unit": str,
}  # fmt: skip
SIMPLETUNER_IMAGES: dict[str, Any] = {
    "id": str, "type": str, "dataset_type": str, "instance_data_dir": str,
    "caption_strategy": str, "metadata_backend": str, "resolution": NUMBER,
    "resolution_type": str, "crop": bool, "crop_style": str, "crop_aspect": str,
    "minimum_image_size": NUMBER, "max_upscale_threshold": NUMBER, "cache_dir_vae": str,
    "repeats": int, "probability": NUMBER, "disable_multiline_split": bool,
}  # fmt: skip
SIMPLETUNER_TEXTS: dict[str, Any] = {
    "id": str, "type": str, "dataset_type": str, "default": bool, "cache_dir": str,
}  # fmt: skip
SIMPLETUNER_CONFIG: dict[str, Any] = {
    "model_family": str, "model_type": str, "pretrained_model_name_or_path": str,
    "data_backend_config": str, "output_dir": str, "lora_rank": int, "lora_alpha": int,
    "max_train_steps": int, "num_train_epochs": int, "checkpointing_steps": int,
    "resume_from_checkpoint": str, "resolution": NUMBER, "resolution_type": str,
    "aspect_bucket_alignment": int, "train_batch_size": int, "gradient_checkpointing": bool,
    "learning_rate": NUMBER, "lr_scheduler": str, "optimizer": str, "mixed_precision": str,
    "snr_gamma": NUMBER, "validation_prompt": str, "seed": int,
}  # fmt: skip


def refuse_unknown(data: Any, schema: Any, where: str = "") -> None:
    """Raise where data has a key or a type that the schema does not know."""
    if isinstance(schema, dict):
        assert isinstance(data, dict), f"{where} is no table"
        if extra := data.keys() - schema.keys():
            raise ValueError(f"{where}: extra keys not allowed: {sorted(extra)}")
        for key, value in data.items():
            refuse_unknown(value, schema[key], f"{where}.{key}")
    elif isinstance(schema, list):
        for item in data:
            refuse_unknown(item, schema[0], where)
    elif not isinstance(data, schema) or (isinstance(data, bool) and schema is not bool):
        raise ValueError(f"{where}: {data!r} has the wrong type")


def options(script: Path) -> dict[str, list[str]]:
    """Options of the last command of a script, with their values."""
    text = script.read_text().replace("\\\n", " ").splitlines()[-1]
    found: dict[str, list[str]] = {}
    name = ""
    for word in shlex.split(text):
        if word.startswith("--"):
            name = word[2:]
            found[name] = []
        elif name and not word.startswith("$"):
            found[name].append(word)
    return found
