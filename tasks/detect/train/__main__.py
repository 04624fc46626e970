"""Train the networks of ``layout`` again, on any folder in the corpus format.

    python -m tasks.detect.train --corpus DIR --output WEIGHTS [--folds 4]

Writes into the folder WEIGHTS the network that draws maps (``layout.onnx``), those that judge
regions (``regions.onnx``) and set their edges (``boxes.onnx``), a card beside each of what it was
trained on (``layout.json`` ...), and, with folds, what networks that never saw a page's work found
on it (``layout.folds.json``), from which the selection benchmark takes honest figures. A run that
was killed, or interrupted (exit code 130), goes on with the networks it has not made. Needs torch
(the ``train`` extra). To use the weights: ``python -m flows.extract --triage.weights WEIGHTS``.
"""

from __future__ import annotations

import signal
import sys

from models.errors import BadSettings, ExitCode


def main() -> None:
    """Train; an interruption and bad settings end in words and an exit code."""
    try:
        # Not sooner: it imports torch, which takes seconds in which there may be Ctrl-C already.
        from tasks.detect.train.command import run

        run()
    except BadSettings as error:
        print(error.message, error.cure, sep="\n", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Python ends by the signal itself, not with our code, if the interrupt fell into a string
        # that was executed, as dataclasses do; executing another makes it forget.
        exec("")
        told = "Interrupted; the same command goes on with the networks that are not made yet."
        print(told, file=sys.stderr)
        raise SystemExit(ExitCode.INTERRUPTED) from None


if __name__ == "__main__":
    main()
