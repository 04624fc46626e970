"""Which samples are in which step."""

from __future__ import annotations

from collections import Counter

from models.handoff import BundleSample, Plan
from tasks.lora.batches import Item, count_batches, divide, epoch_batches, fill

SIZES = ((1024, 1024),) * 5 + ((832, 1216),) * 3


def items(count: int = len(SIZES)) -> list[Item]:
    samples = [
        BundleSample(
            image=f"{number}.jpg", caption="x", file_name=f"images/v/{number}.jpg", width=width,
            height=height, bytes=1, sha256=f"{number * 7919:064x}", pdf="v.pdf",
            page_index=number, kind="engraving",
        )
        for number, (width, height) in enumerate(SIZES[:count])
    ]  # fmt: skip
    return fill(samples, Plan())


def test_a_batch_is_of_one_bucket_and_every_sample_comes_as_often_as_it_should() -> None:
    plan = Plan(batch_size=2, repeats=3)
    batches = epoch_batches(items(), plan, 4)
    assert len(batches) == count_batches(items(), plan) == 8 + 5
    for batch in batches:
        assert len({(item.placed.width, item.placed.height) for item in batch}) == 1
    assert set(Counter(item.sample.image for batch in batches for item in batch).values()) == {3}


def test_the_order_follows_from_seed_and_epoch_alone() -> None:
    plan = Plan(seed=1)
    assert epoch_batches(items(), plan, 3) == epoch_batches(items(), plan, 3)
    assert epoch_batches(items(), plan, 3) != epoch_batches(items(), plan, 4)
    assert epoch_batches(items(), plan, 3) != epoch_batches(items(), Plan(seed=2), 3)


def test_the_same_samples_are_kept_back_whatever_their_order() -> None:
    train, held = divide(items(), 0.25)
    again, kept = divide(items()[::-1], 0.25)
    assert len(held) == 2 and len(train) == 6
    assert {i.sample.image for i in held} == {i.sample.image for i in kept}
    assert {i.sample.image for i in train} == {i.sample.image for i in again}
    assert divide(items(1), 0.5) == (items(1), [])
