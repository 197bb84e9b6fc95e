"""Where to look further: the profilers that are installed here, with what to type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

_TRACES = {
    "torch": (
        "from torch.profiler import profile, schedule, tensorboard_trace_handler",
        "with profile(schedule=schedule(wait=5, warmup=2, active=5), with_stack=True, "
        'on_trace_ready=tensorboard_trace_handler("trace")) as p:',
        "    ...; p.step()  # in the loop, after each step",
    ),
    "jax": (
        "import jax",
        'with jax.profiler.trace("trace"):',
        "    ...  # some steps",
    ),
    "tensorflow": (
        "import tensorflow as tf",
        'tf.profiler.experimental.start("trace")',
        "...  # some steps",
        "tf.profiler.experimental.stop()",
    ),
}


def look_further(snapshot: Snapshot, *, what: str) -> tuple[Fix, ...]:
    """Commands of the profilers that show where the time goes.

    Args:
        snapshot: says which profilers and frameworks there are.
        what: what to look for in the timeline.
    """
    return (_nsys(snapshot, what), *_framework(snapshot))


def _nsys(snapshot: Snapshot, what: str) -> Fix:
    tool = next((each for each in snapshot.host.tools if each.name == "nsys"), None)
    command = (
        "nsys profile -t cuda,nvtx,osrt,cudnn,cublas --delay=30 --duration=15 "
        "-o envcheck-watch python YOUR_PROGRAM"
    )
    if tool is None:
        return Fix(
            title=f"See it in a timeline with Nsight Systems ({what}); it is not on PATH here, and "
            "comes with the CUDA toolkit",
            commands=(command, "nsys stats envcheck-watch.nsys-rep"),
        )
    version = f" {tool.version}" if tool.version else ""
    return Fix(
        title=f"See it in a timeline with Nsight Systems{version} ({what})",
        commands=(command, "nsys stats envcheck-watch.nsys-rep"),
    )


def _framework(snapshot: Snapshot) -> tuple[Fix, ...]:
    """The profiler of the framework that was seen running, else of the first installed one."""
    installed = {each.name: each.version for each in snapshot.env.frameworks or ()}
    running = snapshot.activity.frameworks if snapshot.activity is not None else ()
    for name in (*running, *installed):
        if name in _TRACES:
            version = f" {installed[name]}" if name in installed else ""
            title = f"Or with the profiler of {name}{version}, in the program itself"
            return (Fix(title=title, commands=_TRACES[name]),)
    return ()
