"""Settings of the CLIP model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from models.settings import Group

SMALL = "print"
"""Name of the small model that ships with the project."""


class ClipSettings(Group):
    """The CLIP model that looks at samples."""

    model: str = Field(default="ViT-B-32-256", min_length=1)
    """Any architecture open_clip knows, or print: the small model that ships, for machines that
    reach no model hub; it knows kinds of print and little else."""
    pretrained: str = "datacomp_s34b_b86k"
    """A pretrained tag of the architecture, a file of weights, or local-dir:FOLDER with
    open_clip_config.json and weights; print takes none of them."""
    precision: Literal["auto", "fp32", "int8"] = "auto"
    """auto: half precision on a GPU, fp32 on a processor; int8 (a processor only) is more than
    twice as fast and used only where it decides as fp32 does."""
    batch_size: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = "auto"
    """Images a batch, 1 to 1024; auto takes 8 on a processor and 32 on a GPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto takes a GPU if there is one."""
    profile: str = ""
    """File for a PyTorch profiler trace of the first batches of images (open it in
    chrome://tracing); the operations that took longest are printed at the end."""

    @model_validator(mode="before")
    @classmethod
    def _print_ships_its_weights(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("model") == SMALL:
            return {**given, "pretrained": ""}
        return given

    @model_validator(mode="after")
    def _fits(self) -> ClipSettings:
        if self.precision == "int8" and self.model == SMALL:
            raise ValueError("int8 is of no use to print, which is small and made of convolutions")
        if self.precision == "int8" and self.device == "cuda":
            raise ValueError("int8 runs on a processor only")
        return self
