"""What can go wrong with CLIP weights and with single images."""

from __future__ import annotations

from models.errors import BadSettings, ExitCode, InputFault, StopRun


class WeightsUnreachable(StopRun):
    """The weights of a pretrained tag cannot be downloaded."""

    kind = "weights_unreachable"
    cure = (
        "Connect to the network and run again; or give a file that holds the weights "
        "(--clip.pretrained FILE); or use the small model that ships (--clip.model print)."
    )


class WeightsMismatch(BadSettings):
    """The weights are not those of the architecture."""

    kind = "weights_mismatch"
    cure = "Name the architecture the weights were trained with (--clip.model)."


class ClipMissing(StopRun):
    """open_clip is not installed."""

    kind = "clip_missing"
    exit_code = ExitCode.USAGE
    cure = "pip install 'intaglio[clip]'."


class Int8Refused(BadSettings):
    """INT8 decides otherwise than fp32 on the user's own samples."""

    kind = "int8_refused"
    cure = "Use --clip.precision fp32."


class DamagedImage(InputFault):
    """The file does not decode to a picture."""

    kind = "damaged_image"
    cure = "Make the sample again (python -m flows.verify --repair), or replace the file."


class AnimatedImage(InputFault):
    """The file holds several frames and nobody can say which is meant."""

    kind = "animated_image"
    cure = "Save the frame you want as a picture of its own."


class ImageTooSmall(InputFault):
    """The picture has too few pixels to be looked at."""

    kind = "image_too_small"
    cure = "Replace the file, or leave it out."


class ImageTooLarge(InputFault):
    """The picture has more pixels than Pillow decodes safely."""

    kind = "image_too_large"
    cure = "Scale it down and run again."
