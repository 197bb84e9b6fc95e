"""`step` as callbacks of PyTorch Lightning and of the Transformers Trainer.

The frameworks are imported when a callback is asked for, from the program that uses them.
"""

from __future__ import annotations

import importlib
from typing import Any

from envcheck.watch.steps import recorder


def lightning_callback() -> Any:
    """A callback for `lightning.Trainer(callbacks=[...])` that times every training batch.

    Raises:
        ImportError: neither lightning nor pytorch_lightning is installed.
    """
    base = _first("lightning.pytorch", "pytorch_lightning").Callback

    class WatchSteps(base):  # type: ignore[misc,valid-type]
        """Times training batches; the copy to the GPU counts as waiting for data."""

        def on_train_batch_start(self, *_args: Any, **_kwargs: Any) -> None:
            """Begin a step."""
            self._step = recorder().begin()

        def on_train_batch_end(self, *_args: Any, **_kwargs: Any) -> None:
            """End it."""
            recorder().end(self._step)

        def on_train_end(self, *_args: Any, **_kwargs: Any) -> None:
            """Write the last ones."""
            recorder().flush()

    return WatchSteps()


def transformers_callback() -> Any:
    """A callback for `transformers.Trainer(callbacks=[...])` that times every optimizer step.

    Raises:
        ImportError: transformers is not installed.
    """
    base = importlib.import_module("transformers").TrainerCallback

    class WatchSteps(base):  # type: ignore[misc,valid-type]
        """Times optimizer steps; with gradient accumulation, each of several batches."""

        def on_step_begin(self, *_args: Any, **_kwargs: Any) -> None:
            """Begin a step."""
            self._step = recorder().begin()

        def on_step_end(self, *_args: Any, **_kwargs: Any) -> None:
            """End it."""
            recorder().end(self._step)

        def on_train_end(self, *_args: Any, **_kwargs: Any) -> None:
            """Write the last ones."""
            recorder().flush()

    return WatchSteps()


def _first(*names: str) -> Any:
    for name in names[:-1]:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return importlib.import_module(names[-1])
