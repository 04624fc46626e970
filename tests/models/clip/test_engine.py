"""The engine: right vectors in the right order, memory given back, errors a user can act on."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

pytest.importorskip("open_clip")

import open_clip
import torch
from PIL import Image

import flows.score
from models.clip.check import check_model
from models.clip.engine import ClipEngine
from models.clip.load import SHIPPED
from models.clip.settings import ClipSettings
from models.errors import BadSettings, ExitCode, InputFault, StopRun
from tests.models.clip.conftest import ARCHITECTURE

Encoder = Callable[..., bytes]
SMALL = ClipSettings(model="print")


def images(encoded: Encoder, count: int) -> list[tuple[str, Callable[[], bytes]]]:
    return [(f"{n}.jpg", lambda n=n: encoded(n)) for n in range(count)]  # type: ignore[misc]


def test_importing_the_engine_loads_no_torch() -> None:
    program = "import sys, models.clip.engine, models.clip.int8; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_images_come_in_order_as_unit_vectors_and_bad_ones_cost_themselves(
    encoded: Encoder,
) -> None:
    given = images(encoded, 21)
    given[5] = ("broken.jpg", lambda: encoded(5)[:500])
    given[20] = ("dot.png", lambda: encoded(20, "PNG", size=(1, 1)))
    with ClipEngine(SMALL) as engine:
        found = list(engine.embed_images(given))
        alone = dict(engine.embed_images(given[7:8]))
    assert [name for name, _ in found] == [name for name, _ in given]
    faults = {name for name, vector in found if isinstance(vector, InputFault)}
    assert faults == {"broken.jpg", "dot.png"}
    vectors = np.stack([v for _, v in found if not isinstance(v, InputFault)])
    assert vectors.shape == (19, 128) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # Neighbours in the batch do not matter.
    np.testing.assert_allclose(alone["7.jpg"], dict(found)["7.jpg"], atol=1e-5)


def test_vectors_are_those_of_open_clip_itself(encoded: Encoder, weights: Path) -> None:
    settings = ClipSettings(model=ARCHITECTURE, pretrained=str(weights), device="cpu")
    model, _, transform = open_clip.create_model_and_transforms(
        ARCHITECTURE, str(weights), image_resize_mode="longest"
    )
    tokens = open_clip.get_tokenizer(ARCHITECTURE)(["a wood engraving"])
    # A square picture of the model's own size leaves nothing to preprocessing but the values.
    data = encoded(1, "PNG", size=(224, 224))
    import io

    picture = transform(Image.open(io.BytesIO(data)))
    with torch.inference_mode():
        image = model.eval().encode_image(picture[None], normalize=True)[0].numpy()
        text = model.encode_text(tokens, normalize=True).numpy()
    with ClipEngine(settings) as engine:
        assert engine.name.startswith(f"{ARCHITECTURE}/random.pt (") and "fp32" in engine.name
        assert not engine.small
        np.testing.assert_allclose(
            dict(engine.embed_images([("a", lambda: data)]))["a"], image, atol=1e-5
        )
        np.testing.assert_allclose(engine.embed_texts(["a wood engraving"]), text, atol=1e-5)
        assert engine.logit_scale == pytest.approx(float(model.logit_scale.exp()), rel=1e-4)


def test_ensembles_are_averaged_and_normalised_again() -> None:
    with ClipEngine(SMALL) as engine:
        texts = ["a map", "a town plan", "an engraved map"]
        found = engine.embed_prompts({"map": texts, "music": ["sheet music"]})
        mean = engine.embed_texts(texts).mean(axis=0)
    assert found.shape == (2, 128)
    np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_leaving_the_block_gives_the_memory_back(encoded: Encoder, weights: Path) -> None:
    process = psutil.Process()
    settings = ClipSettings(model=ARCHITECTURE, pretrained=str(weights), device="cpu")

    def use() -> int:
        with ClipEngine(settings) as engine:
            list(engine.embed_images(images(encoded, 9)))
            return process.memory_info().rss

    use()  # what the libraries themselves take, once
    gc.collect()
    before = process.memory_info().rss
    most = use()
    after = process.memory_info().rss
    assert most - before > 200e6, "the model is large enough to be seen"
    assert after - before < 30e6


def test_nothing_is_loaded_before_the_first_use_and_it_can_be_used_again(encoded: Encoder) -> None:
    engine = ClipEngine(SMALL)
    assert engine._loaded is None
    first = dict(engine.embed_images(images(encoded, 1)))["0.jpg"]
    engine.close()
    assert engine._loaded is None
    np.testing.assert_array_equal(dict(engine.embed_images(images(encoded, 1)))["0.jpg"], first)


def test_few_batches_are_decoded_ahead(encoded: Encoder) -> None:
    asked = []

    def endless():  # type: ignore[no-untyped-def]
        for n in range(10_000):
            asked.append(n)
            yield f"{n}", lambda: encoded(1)

    with ClipEngine(SMALL.model_copy(update={"batch_size": 4})) as engine:
        stream = engine.embed_images(endless())
        next(stream)
        assert len(asked) <= 16
        stream.close()


@pytest.mark.parametrize(
    ("settings", "says", "cure"),
    [
        ({"model": "ViT-B-33"}, "ViT-B-33", "ViT-B-32"),
        ({"pretrained": "nonsense"}, "nonsense", "datacomp_s34b_b86k"),
        ({"model": "ViT-B-32", "pretrained": "openai"}, "QuickGELU", "ViT-B-32-quickgelu"),
        (
            {"model": "ViT-B-32-quickgelu", "pretrained": "laion2b_s34b_b79k"},
            "laion2b_s34b_b79k is neither",
            "openai",
        ),
        ({"pretrained": "local-dir:/nowhere"}, "/nowhere", "setting"),
        ({"pretrained": ""}, "an empty name is neither", "datacomp_s34b_b86k"),
        ({"device": "cuda"}, "GPU", "cpu"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    settings: dict[str, str], says: str, cure: str
) -> None:
    if torch.cuda.is_available() and "device" in settings:
        pytest.skip("there is a GPU")
    with pytest.raises(BadSettings) as caught, ClipEngine(ClipSettings(**settings)) as engine:
        engine.embed_texts(["a"])
    assert says in caught.value.message and cure in caught.value.cure


def test_a_file_of_other_weights_is_refused(weights: Path, tmp_path: Path) -> None:
    quick = tmp_path / "vit_b_32-quickgelu-laion400m_e32-46683a32.pt"
    quick.symlink_to(weights)
    for model, file, says in (
        ("ViT-B-32", weights, "random.pt"),
        ("ViT-B-32", quick, "QuickGELU"),
        (ARCHITECTURE, Path(__file__), "test_engine.py"),
    ):
        settings = ClipSettings(model=model, pretrained=str(file), device="cpu")
        with pytest.raises(BadSettings, match=says) as caught, ClipEngine(settings) as engine:
            engine.embed_texts(["a"])
        assert len(caught.value.message) < 500


def test_weights_out_of_reach_have_three_cures(tmp_path: Path) -> None:
    program = (
        "from models.clip.engine import ClipEngine\n"
        "from models.clip.settings import ClipSettings\n"
        "from models.errors import StopRun\n"
        "try:\n    ClipEngine(ClipSettings()).embed_texts(['a'])\n"
        "except StopRun as error:\n"
        "    import json; print(json.dumps([error.message, error.cure, error.exit_code]))\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    message, cure, code = json.loads(done.stdout)
    assert "ViT-B-32-256/datacomp_s34b_b86k" in message and len(message) < 400
    assert all(way in cure for way in ("network", "file", "--clip.model print"))
    assert code == ExitCode.STOPPED
    assert not done.stderr.strip(), "one error, said once"


def test_short_gpu_memory_halves_the_batch_and_a_lost_gpu_leaves_the_processor(
    encoded: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "intaglio.clip")
    logging.getLogger("intaglio.clip").propagate = True
    with ClipEngine(SMALL.model_copy(update={"batch_size": 8, "device": "cpu"})) as engine:
        wanted = [vector for _, vector in engine.embed_images(images(encoded, 8))]
        tower = engine._tower
        assert tower is not None

        def short(pixels: np.ndarray) -> np.ndarray:
            if len(pixels) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return tower(pixels)

        engine._device, engine._tower = "cuda", short
        found = [vector for _, vector in engine.embed_images(images(encoded, 8))]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert engine.batch_size == 2

        def lost(pixels: np.ndarray) -> np.ndarray:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        engine._tower = lost
        found = [vector for _, vector in engine.embed_images(images(encoded, 8))]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert engine._device == "cpu"
    assert "going on with the processor" in caplog.text


def test_a_profile_of_the_first_batches_is_written(
    encoded: Encoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trace = tmp_path / "sub" / "trace.json"
    caplog.set_level(logging.INFO, "intaglio.clip")
    logging.getLogger("intaglio.clip").propagate = True
    settings = SMALL.model_copy(update={"profile": str(trace), "device": "cpu"})
    with ClipEngine(settings) as engine:
        engine.embed_texts(["a text that a run embeds before any image"])
        assert not trace.exists()
        # Given back and loaded again, as before INT8 is checked.
        engine.close()
        list(engine.embed_images(images(encoded, 3)))
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert "aten::convolution" in names and "aten::embedding" not in names, "images, not texts"
    assert "convolution" in caplog.text and "No image was embedded" not in caplog.text
    trace.unlink()
    with ClipEngine(settings) as engine:
        engine.embed_texts(["a text"])
    assert "No image was embedded" in caplog.text and not trace.exists()


def test_a_profile_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "trace.json"):
        with pytest.raises(BadSettings, match=r"clip\.profile.*cannot be written"):
            ClipEngine(SMALL.model_copy(update={"profile": str(place)}))
        with pytest.raises(BadSettings, match=r"clip\.profile"):
            check_model(SMALL.model_copy(update={"profile": str(place)}))
        with pytest.raises(BadSettings, match=r"clip\.profile"):
            flows.score.main(["--dataset", "nowhere", "--clip.profile", str(place)])


def test_the_model_that_ships_is_small_and_says_what_it_is() -> None:
    engine = ClipEngine(SMALL)
    assert engine.small and engine.name.startswith("print (the small model that ships, ")
    sizes = [path.stat().st_size for path in SHIPPED.iterdir()]
    assert sum(sizes) < 12e6
    assert (SHIPPED / "README.md").exists()


def test_a_storage_that_is_gone_stops_the_run(encoded: Encoder) -> None:
    from models.errors import StorageGone

    def gone() -> bytes:
        raise StorageGone("s3://bucket does not answer")

    with ClipEngine(SMALL) as engine, pytest.raises(StopRun):
        list(engine.embed_images([("a", lambda: encoded(1)), ("b", gone)]))
