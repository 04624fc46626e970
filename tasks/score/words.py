"""The verdict in words: for the terminal, the report and the Prefect UI."""

from __future__ import annotations

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from models.calibrate import Rate
from models.score import Verdict
from tasks.score.judge import CAUSES

CONTRARY = "the {:,} labels say the opposite of the scores and calibrate nothing: look them through"


def rows(verdict: Verdict) -> list[tuple[str, str]]:
    """What a person wants to know, line by line."""
    dropped = ", ".join(f"{CAUSES[why]} {count:,}" for why, count in verdict.dropped.items())
    spread = verdict.spread
    lines = [
        ("samples", f"{verdict.samples:,}"),
        ("kept", f"{verdict.kept:,}"),
        ("dropped", f"{verdict.samples - verdict.kept:,}" + (f" ({dropped})" if dropped else "")),
        ("purity", purity(verdict)),
        ("probabilities", calibration(verdict)),
        (
            "duplicates",
            f"{verdict.duplicates:,} copies of {verdict.duplicate_groups:,} pictures",
        ),
    ]
    if spread.coverage is not None:
        lines.append(("coverage", f"{percent(spread.coverage)} of the illustrations extracted"))
    lines.append(
        (
            "variety",
            f"as many as {spread.vendi_kept:.1f} wholly distinct pictures "
            f"(all illustrations: {spread.vendi_all:.1f})",
        )
    )
    for name, balance in spread.balance.items():
        lines.append(
            (
                f"balance of {name}",
                f"evenness {balance.evenness:.2f} over {len(balance.groups):,}, "
                f"{balance.drift:.2f} bits from the archive",
            )
        )
    if verdict.selection:
        chosen = verdict.selection
        bend = (
            f"; each of the first {chosen.knee:,} adds more than they do on average, each after "
            "that less"
            if chosen.knee
            else ""
        )
        lines.append(
            (
                "selection",
                f"{chosen.chosen:,} chosen cover {percent(chosen.value)} of what all would; no "
                f"choice of as many covers more than {percent(chosen.bound)}{bend}",
            )
        )
    lines.append(("scored by", verdict.scored_by))
    if verdict.note:
        lines.append(("note", verdict.note))
    return lines


def purity(verdict: Verdict) -> str:
    """How pure the dataset is, and, with labels, how pure the scores alone would leave it."""
    found = verdict.purity
    if found.estimate is None:
        return "nothing was kept"
    guess = f"estimated without labels {percent(found.estimate)}"
    if found.estimate_before is not None:
        guess += f" (before: {percent(found.estimate_before)})"
    if found.measured.value is None:
        return guess
    alone = f"{rate(found.measured)} of what the scores alone would keep, by labels"
    return f"{alone} (what these say is none was then dropped); {guess}"


def calibration(verdict: Verdict) -> str:
    """Where the probabilities come from and how far they may be trusted."""
    found = verdict.purity
    if found.calibrated_by == "labels":
        text = f"{found.method}, fitted on {found.labelled:,} labels"
    elif found.calibrated_by == "model card":
        text = "as the model card of the small model has them"
    else:
        text = "the model's own, not calibrated: label some samples (--labels)"
    if found.contrary:
        text += f"; {CONTRARY.format(found.labelled)}"
    if found.ece is not None:
        text += f"; expected calibration error {found.ece:.3f}"
    if found.auc is not None:
        text += f"; AUC {found.auc:.3f}"
    return text


def percent(share: float) -> str:
    """A share in per cent, with one place; 100.0 only where it is the whole."""
    return f"{min(100 * share, 99.9) if share < 1 else 100:.1f} %"


def rate(found: Rate) -> str:
    """A share with its interval."""
    if found.value is None or found.low is None or found.high is None:
        return "–"
    return f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})"


def show_artifacts(verdict: Verdict) -> None:
    """Make the run's artifacts for the Prefect UI."""
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows(verdict))]
    create_markdown_artifact("\n".join(lines), key="score-verdict", description="Verdict")
    table = [{"reason": CAUSES[why], "samples": count} for why, count in verdict.dropped.items()]
    create_table_artifact(table, key="score-dropped", description="Dropped samples by reason")
