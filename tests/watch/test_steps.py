"""`envcheck.watch.step`: what it times, what it costs, and with which frameworks."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Any

import pytest

from envcheck.watch import callbacks, steps
from envcheck.watch.steps import MOST_OVERHEAD, Clock, Recorder
from tests.cli.runner import environment


class Event:
    """A CUDA event of a GPU that is done at once, or never."""

    now = 0.0
    done = True

    def __init__(self, enable_timing: bool) -> None:
        """Torch's own default has no timing."""
        assert enable_timing

    def record(self) -> None:
        """Take the moment: a millisecond after the last one."""
        Event.now += 1.0
        self.at = Event.now

    def query(self) -> bool:
        """Whether the GPU has come so far."""
        return Event.done

    def elapsed_time(self, later: Event) -> float:
        """Milliseconds."""
        return later.at - self.at


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A torch with an initialised GPU."""
    fake: Any = types.ModuleType("torch")
    fake.cuda = types.SimpleNamespace(is_initialized=lambda: True, Event=Event)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(Event, "done", True)
    made: types.ModuleType = fake
    return made


def _step(recorder: Recorder) -> None:
    made = recorder.begin()
    if made is not None:
        with made.to_device():
            pass
        with made.communication():
            pass
    recorder.end(made)


@pytest.mark.usefixtures("torch")
def test_parts_are_timed_by_events_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_OVERHEAD", 1.0)
    recorder = Recorder(None)
    for _ in range(10):
        _step(recorder)
    found = recorder.summary()
    assert found is not None
    assert found.count == 10
    # Six events a step: first, two around each part, last.
    assert found.to_device == pytest.approx(0.001)
    assert found.communication == pytest.approx(0.001)
    assert found.compute == pytest.approx(0.003)


@pytest.mark.usefixtures("torch")
def test_a_gpu_that_is_far_behind_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Event, "done", False)
    monkeypatch.setattr(steps, "MOST_OVERHEAD", 1.0)
    recorder = Recorder(None)
    for _ in range(200):
        _step(recorder)
    assert recorder.summary() is None
    assert len(recorder._pending) <= 65


def test_cuda_that_nobody_initialised_is_left_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("torch")
    fake.cuda = types.SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert isinstance(Clock().mark(), float)


def test_steps_that_are_over_at_once_are_only_counted() -> None:
    recorder = Recorder(None)
    for _ in range(5000):
        _step(recorder)
    found = recorder.summary()
    assert found is not None
    assert found.count == 5000
    assert recorder._all["timed"] < 2500
    assert MOST_OVERHEAD <= 0.01


def test_importing_it_imports_nothing_heavy() -> None:
    script = (
        "import sys, envcheck.watch\n"
        "heavy = {'torch', 'rich', 'subprocess', 'json', 'envcheck.model'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=True,
    )
    assert done.stdout == "\n"


def test_callbacks_time_the_steps_of_both_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    lightning: Any = types.ModuleType("pytorch_lightning")
    lightning.Callback = type("Callback", (), {})
    transformers: Any = types.ModuleType("transformers")
    transformers.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", lightning)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.setattr(steps, "_recorders", {})
    first, second = callbacks.lightning_callback(), callbacks.transformers_callback()
    assert isinstance(first, lightning.Callback)
    assert isinstance(second, transformers.TrainerCallback)
    for _ in range(2):
        first.on_train_batch_start(None, None, batch=1, batch_idx=0)
        first.on_train_batch_end(None, None, outputs=None, batch=1, batch_idx=0)
        second.on_step_begin(None, None, None)
        second.on_step_end(None, None, None)
    first.on_train_end(None, None)
    second.on_train_end(None, None, None)
    found = steps.summary()
    assert found is not None
    assert found.count == 4
