"""How busy GPU and host are: sampling them from outside, and timing training steps from inside.

A training loop may call `step` (see `envcheck.watch.steps`), which needs no torch and imports
nothing heavy:

    from envcheck.watch import step

    for batch in loader:
        with step() as now:
            with now.to_device():
                batch = batch.to("cuda", non_blocking=True)
            train(batch)
"""

from envcheck.watch.callbacks import lightning_callback, transformers_callback
from envcheck.watch.steps import step, summary

__all__ = ["lightning_callback", "step", "summary", "transformers_callback"]
