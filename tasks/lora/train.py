"""The training itself: step by step from the last checkpoint, to the same weights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite
from statistics import fmean
from typing import Any, Literal

from pydantic import ValidationError

from models.errors import BadSettings
from models.handoff import Bundle, BundleSample, Plan
from models.settings import fingerprint as settings_key
from models.train import Diverged, Trained, TrainerMissing, TrainSettings
from tasks.lora import checkpoint
from tasks.lora.base import (
    TARGETS,
    Device,
    choose_device,
    load_part,
    load_schedule,
)
from tasks.lora.batches import (
    Item,
    count_batches,
    count_steps,
    divide,
    epoch_batches,
    epoch_of,
    epochs_done,
    fill,
)
from tasks.lora.cache import fill_all
from tasks.lora.checkpoint import Progressed
from tasks.lora.export import DIFFUSERS, KOHYA, describe, export
from tasks.lora.log import Log, check_tracking
from tasks.lora.loss import Batcher, draw, losses, weights
from tasks.lora.preview import preview, write_image
from tasks.lora.sdxl import check_base
from tasks.progress import Progress
from tasks.storage import Storage

RESULT = "training.json"
TIMES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where on the noise schedule the validation loss is measured."""
logger = logging.getLogger("intaglio.train")


class Training:
    """A training of a LoRA on a bundle.

    Args:
        settings: Where and how.
        bundle: The bundle's record.
        samples: Its pictures and captions.
        progress: Where progress is told.

    Attributes:
        output: Where it writes.
        elsewhere: What to do if nothing can be written there.

    Raises:
        BadSettings: Bundle, model or machine will not do; nothing has been written.
        TrainerMissing: A library is missing.
    """

    elsewhere = "Name a folder that can be written with --output, and run the same command again."

    def __init__(
        self,
        settings: TrainSettings,
        bundle: Bundle,
        samples: Sequence[BundleSample],
        progress: Progress,
    ) -> None:
        if not samples or not bundle.images:
            raise BadSettings(
                f"bundle: {settings.bundle} has no folder of pictures.",
                "The bundle of kohya has one.",
            )
        self.settings, self.lora, self.bundle = settings, settings.lora, bundle
        self.plan: Plan = bundle.plan
        self.base = settings.lora.base_model or self.plan.base_model
        self.device: Device = choose_device(self.plan.precision, settings.lora.allow_cpu)
        if self.lora.optimizer == "adamw8bit" and find_spec("bitsandbytes") is None:
            raise TrainerMissing("adamw8bit needs bitsandbytes.", "pip install bitsandbytes")
        if self.lora.optimizer == "adamw8bit" and self.device.name == "cpu":
            raise BadSettings(
                "lora.optimizer adamw8bit needs a GPU.", "Leave --lora.optimizer out here."
            )
        check_tracking(settings.tracking_uri)
        # Weights that were swapped under the same name make it another training.
        which = check_base(self.base)
        self.source = Storage(settings.bundle)
        self.items = fill(samples, self.plan)
        self.train_items, self.held_items = divide(self.items, self.lora.validation_share)
        self.epoch_steps = count_batches(self.train_items, self.plan)
        self.total = count_steps(
            self.epoch_steps, self.lora.epochs, self.lora.steps or self.plan.steps
        )
        given = self.lora.prompts or [self.plan.prompt]
        self.prompts = [", ".join(filter(None, (bundle.trigger, prompt))) for prompt in given]
        self.progress = progress
        # What decides the weights; where it ends and what is shown on the way does not.
        self.key = settings_key(
            bundle.dataset_sha256,
            bundle.captions_sha256,
            self.plan.model_copy(update={"steps": 1, "save_every": 1, "prompt": ""}),
            (self.base, which, self.lora.optimizer),
            (self.lora.min_snr_gamma, self.lora.validation_share),
        )
        # A bundle that has grown since is trained on anew, beside what was trained before.
        own = f"{settings.bundle.rstrip('/')}/output/{self.key[:8]}"
        self.output = Storage(settings.output or own)

    def run(self) -> Trained:
        """Train to the end, from the last checkpoint if there is one.

        Raises:
            StopRun: The storage failed, the model cannot be loaded, or the output holds another
                training.
        """
        import torch
        from accelerate import Accelerator
        from peft import LoraConfig, set_peft_model_state_dict

        if self.device.name == "cpu":
            # Sums are then the same however many processors there are.
            torch.set_num_threads(1)
        found = checkpoint.load(self.output, self.key)
        about = self._about()
        settings = {"lora": self.lora.model_dump(mode="json"), **about}
        if finished := self._finished(settings):
            return finished
        self.latents, self.texts = fill_all(
            self.output,
            self.source,
            self.bundle.images,
            self.base,
            self.items,
            self.prompts,
            self.device,
            self.progress,
        )
        self.batcher = Batcher(self.latents, self.texts, self.device)
        self.schedule = load_schedule(self.base)
        accelerator = Accelerator(
            mixed_precision=self.device.precision, cpu=self.device.name == "cpu"
        )
        self.unet = load_part(self.base, "unet", self.device).to(self.device.name)
        self._seed()
        self.unet.add_adapter(
            LoraConfig(
                r=self.plan.rank,
                lora_alpha=self.plan.alpha,
                init_lora_weights="gaussian",
                target_modules=TARGETS,
            )
        )
        if self.lora.gradient_checkpointing:
            self.unet.enable_gradient_checkpointing()
        trained = [weight.requires_grad_() for weight in self._trained()]
        for weight in trained:
            # Weights that are stepped are in full precision; the frozen ones are not.
            weight.data = weight.data.float()
        optimizer = self._optimizer(trained)
        done = Progressed()
        if found:
            done, state = found
            set_peft_model_state_dict(self.unet, state["weights"])
            optimizer.load_state_dict(state["optimizer"])
            if accelerator.scaler is not None and state["scaler"]:
                accelerator.scaler.load_state_dict(state["scaler"])
        self.unet, optimizer = accelerator.prepare(self.unet, optimizer)
        with Log(self.output, self.settings.tracking_uri, done.step, about) as log:
            ended = self._steps(accelerator, optimizer, trained, done, log)
            self.unet = accelerator.unwrap_model(self.unet)
            self._show(done.step, log, last=True)
            export(self.output, self.unet, describe({**about, "steps": done.step}), self.plan.alpha)
            result = self._result(done, ended, settings)
            data = result.model_dump_json(indent=2).encode()
            files = {name: self.output.read(name) for name in (DIFFUSERS, KOHYA)}
            tags = {name: str(about[name]) for name in ("dataset_sha256", "captions_sha256")}
            log.register({**files, RESULT: data}, tags)
        # Last, as it says that nothing is left to do.
        self.output.write(RESULT, data)
        return result

    def _finished(self, settings: dict[str, Any]) -> Trained | None:
        """What this very training came to, if it is done and its files are there."""
        if not all(self.output.size(name) for name in (RESULT, DIFFUSERS, KOHYA)):
            return None
        try:
            result = Trained.model_validate_json(self.output.read(RESULT))
        except ValidationError as error:
            logger.warning(
                "%s cannot be read, and is made again from the last checkpoint: %s",
                self.output.path(RESULT),
                error,
            )
            return None
        same = result.key == self.key and result.settings == settings
        return result if same else None

    def _seed(self) -> None:
        """The LoRA's first weights are the same in every run."""
        import torch

        torch.manual_seed(self.plan.seed)

    def _trained(self) -> list[Any]:
        return [value for name, value in self.unet.named_parameters() if "lora_" in name]

    def _optimizer(self, trained: list[Any]) -> Any:
        import torch

        if self.lora.optimizer == "adamw8bit":
            import bitsandbytes

            return bitsandbytes.optim.AdamW8bit(trained, lr=self.plan.learning_rate)
        return torch.optim.AdamW(trained, lr=self.plan.learning_rate)

    def _steps(
        self, accelerator: Any, optimizer: Any, trained: list[Any], done: Progressed, log: Log
    ) -> Literal["steps", "epochs", "flat"]:
        self.progress.start(self.total, "training")
        self.progress.advance(done.step, resumed=done.step)
        batches: list[list[Item]] = []
        try:
            while done.step < self.total:
                if self._is_flat(done):
                    return "flat"
                epoch, place = epoch_of(done.step, self.epoch_steps)
                if not batches or place == 0:
                    batches = epoch_batches(self.train_items, self.plan, epoch)
                loss = self._step(accelerator, optimizer, trained, batches[place], done.step)
                done.step += 1
                done.losses.append(loss)
                log.number("loss", loss, done.step)
                self.progress.advance()
                self._now_and_then(accelerator, optimizer, done, log)
        finally:
            self.progress.stop()
        return "epochs" if self.total == self.epoch_steps * self.lora.epochs else "steps"

    def _step(
        self, accelerator: Any, optimizer: Any, trained: list[Any], items: list[Item], step: int
    ) -> float:
        self.unet.train()
        batch = self.batcher(items)
        train_steps = self.schedule.config.num_train_timesteps
        noise, times = draw(self.plan.seed, step, batch["latents"].shape, train_steps, self.device)
        with accelerator.autocast():
            errors = losses(self.unet, self.schedule, batch, noise, times, self.device.dtype)
        loss = (errors * weights(self.schedule, times, self.lora.min_snr_gamma)).mean()
        # Before it spoils the weights.
        value = self._finite("loss", float(loss.detach()), step + 1)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value

    def _now_and_then(self, accelerator: Any, optimizer: Any, done: Progressed, log: Log) -> None:
        last = done.step == self.total
        if self.held_items and (last or done.step % self.lora.validate_every == 0):
            loss = self._finite("validation loss", self._validate(accelerator), done.step)
            done.validation[done.step] = loss
            log.number("validation_loss", loss, done.step)
        if self.lora.images_every and done.step % self.lora.images_every == 0 and not last:
            self._show(done.step, log)
        if last or done.step % self.lora.checkpoint_every == 0:
            from peft import get_peft_model_state_dict

            lora = get_peft_model_state_dict(accelerator.unwrap_model(self.unet))
            state = {key: value.detach().cpu() for key, value in lora.items()}
            self._finite(
                "sum of the weights", sum(float(v.sum()) for v in state.values()), done.step
            )
            inner = getattr(optimizer, "optimizer", optimizer)
            checkpoint.save(self.output, self.key, done, state, inner, accelerator.scaler)

    def _finite(self, what: str, value: float, step: int) -> float:
        """A number that is one.

        Raises:
            Diverged: It is infinite or none; nothing of it goes into a checkpoint.
        """
        if not isfinite(value):
            raise Diverged(f"{self.output.url}: the {what} at step {step:,} is {value}.")
        return value

    def _validate(self, accelerator: Any) -> float:
        """Mean loss on the samples kept back, with the same noise each time."""
        import torch

        self.unet.eval()
        train_steps = self.schedule.config.num_train_timesteps
        found = []
        for number, item in enumerate(self.held_items):
            batch = self.batcher([item])
            noise, _ = draw(
                self.plan.seed, -1 - number, batch["latents"].shape, train_steps, self.device
            )
            for share in TIMES:
                times = torch.tensor([int(share * train_steps)], device=self.device.name)
                with torch.inference_mode(), accelerator.autocast():
                    dtype = self.device.dtype
                    found.append(
                        float(losses(self.unet, self.schedule, batch, noise, times, dtype))
                    )
        return fmean(found)

    def _is_flat(self, done: Progressed) -> bool:
        """Whether the best measurement is too long ago."""
        if not self.lora.patience or not done.validation:
            return False
        found = list(done.validation.values())
        return len(found) - 1 - found.index(min(found)) >= self.lora.patience

    def _show(self, step: int, log: Log, last: bool = False) -> None:
        self.unet.eval()
        images = preview(
            self.base,
            self.unet,
            self.texts,
            self.prompts,
            self.plan.resolution,
            self.lora.image_steps,
            self.plan.seed,
            self.device,
        )
        for number, image in enumerate(images, start=1):
            name = f"final-{number}" if last else f"step-{step:08d}-{number}"
            write_image(self.output, name, image)
            log.image(f"prompt-{number}", image, step)

    def _about(self) -> dict[str, Any]:
        return {
            "base_model": self.base,
            "trigger": self.bundle.trigger,
            "dataset_sha256": self.bundle.dataset_sha256,
            "captions_sha256": self.bundle.captions_sha256,
            "samples": len(self.items),
            "license": self.bundle.license,
            **self.plan.model_dump(exclude={"base_model"}),
            **self.lora.model_dump(include={"optimizer", "min_snr_gamma", "validation_share"}),
        }

    def _result(
        self,
        done: Progressed,
        ended: Literal["steps", "epochs", "flat"],
        settings: dict[str, Any],
    ) -> Trained:
        tenth = max(1, len(done.losses) // 10)
        return Trained(
            key=self.key,
            steps=done.step,
            epochs=epochs_done(done.step, self.epoch_steps),
            ended=ended,
            loss_first=fmean(done.losses[:tenth]),
            loss_last=fmean(done.losses[-tenth:]),
            validation=done.validation,
            diffusers=DIFFUSERS,
            kohya=KOHYA,
            dataset_sha256=self.bundle.dataset_sha256,
            captions_sha256=self.bundle.captions_sha256,
            settings=settings,
        )
