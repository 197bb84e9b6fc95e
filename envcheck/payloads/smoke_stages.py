"""Stages of the smoke test: runs them one by one, and prints each one's result as it ends.

A line before and a line after each stage, so that a process that dies or hangs in the middle of one
has said what came before and where it was. The scripts `smoke_*.py` are written with this; they run
by themselves too: `python smoke_torch.py`.
"""

import contextlib
import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
import traceback

MARKER = "envcheck-json:"
LONGEST = 500
"""Characters of an error that are kept; a line must fit into one write to a pipe."""
PR_SET_PDEATHSIG = 1


class Skip(Exception):
    """The stage does not apply here; the message says why."""


class Wrong(Exception):
    """The stage ran and its numbers are not those of the reference."""


def read_settings(argv):
    """What was asked for: a JSON object as the only argument; without one, everything on the GPU.

    device: `cuda` or `cpu`. gpus: indices as the framework counts them, or None for all.
    compile: try `torch.compile` too. timeout: seconds that a stage may take before it is killed,
    None when nobody watches. held: load the framework, then wait for a byte on stdin.
    """
    settings = {"device": "cuda", "gpus": None, "compile": False, "timeout": None, "held": False}
    if len(argv) > 1:
        settings.update(json.loads(argv[1]))
    return settings


def wait_if_held(settings):
    """Wait to be told to go on: the machine is still being looked at, as it is without CUDA."""
    if settings["held"] and not os.read(0, 1):
        leave(1)  # nobody is there any more


def leave(code):
    """End this process at once. All has been said, and a framework takes a second to tidy up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def die_with_parent(*_worker):
    """Ask the kernel to end this process when the one that started it dies. Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def libcuda():
    """The driver's library, initialised, or a RuntimeError with its own name for what is wrong."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(str(error)) from None
    check(library, "cuInit", library.cuInit(0))
    return library


def check(library, call, status):
    """Raise what a CUresult says, unless it is success."""
    if status == 0:
        return
    words = []
    for function in ("cuGetErrorName", "cuGetErrorString"):
        text = ctypes.c_char_p()
        if hasattr(library, function):
            getattr(library, function)(status, ctypes.byref(text))
        if text.value:
            words.append(text.value.decode("utf-8", "replace"))
    raise RuntimeError("%s: %s" % (call, ": ".join(words) or "CUDA error") + " (%d)" % status)


def close(error, tolerance, what):
    """Raise `Wrong` unless an error is within its tolerance; give it back as a metric."""
    if not error <= tolerance:  # written so that NaN is wrong too
        raise Wrong(
            "%s differs from the reference by %.3g, more than %.3g" % (what, error, tolerance)
        )
    return {"error": (error, "relative")}


class Stages:
    """Runs stages and reports on them.

    Attributes:
        device: what the stages are about, `cuda:0`; set it before running them.
        failed: names of the stages that did not succeed on this device.
        lost: the device does not answer any more after one of them, so the rest is pointless.
        still_there: a call that raises when the device is lost.
    """

    def __init__(self, framework, settings, rank=None):
        """Report for a framework; `rank` tells several processes of one run apart."""
        self.framework = framework
        self.settings = settings
        self.rank = rank
        self.still_there = None
        self.start("cuda" if settings["device"] == "cuda" else "cpu")
        if settings["timeout"]:
            die_with_parent()
        faulthandler.enable()

    def start(self, device):
        """Turn to a device."""
        self.device = device
        self.failed = []
        self.lost = False

    def say(self, event, **facts):
        """Print one line, in one write, so that lines of several processes do not mix."""
        record = {"event": event, "framework": self.framework, "device": self.device}
        if self.rank is not None:
            record["rank"] = self.rank
        record.update(facts)
        sys.stdout.flush()
        os.write(1, ("\n%s%s\n" % (MARKER, json.dumps(record))).encode())

    def run(self, name, function, *arguments):
        """Run one stage.

        Args:
            name: of the stage.
            function: does it and gives its metrics, `{name: (value, unit)}` or None. It raises
                `Skip`, `Wrong`, or whatever goes wrong.
            arguments: for the function.

        Returns:
            Whether the stage was ok.
        """
        if self.lost:
            return self.skip(name, "the device stopped working in %s" % self.failed[-1])
        self.say("begin", name=name)
        if self.settings["timeout"]:
            # Shortly before it would be killed, a stage that hangs shows where.
            wait = self.settings["timeout"]
            faulthandler.dump_traceback_later(max(wait * 0.8, wait - 2.0), exit=False)
        started = time.perf_counter()
        metrics, outcome, detail = None, "ok", ""
        try:
            metrics = function(*arguments)
        except Skip as reason:
            outcome, detail = "skipped", str(reason)
        except Wrong as reason:
            outcome, detail = "wrong", str(reason)
        except Exception as error:
            outcome = "error"
            detail = "%s: %s" % (type(error).__name__, str(error).strip() or "no message")
            traceback.print_exc()
            sys.stderr.flush()
        seconds = time.perf_counter() - started
        faulthandler.cancel_dump_traceback_later()
        if outcome not in ("ok", "skipped"):
            self.failed.append(name)
        self.say(
            "stage",
            name=name,
            outcome=outcome,
            seconds=seconds,
            detail=" ".join(detail.split())[:LONGEST],
            metrics=[
                {"name": key, "value": float(value), "unit": unit}
                for key, (value, unit) in (metrics or {}).items()
            ],
        )
        if outcome == "error" and self.still_there is not None:
            try:
                self.still_there()
            except Exception:
                self.lost = True
        return outcome == "ok"

    def skip(self, name, reason):
        """Say of a stage that it was not run, and why; always False."""
        self.say("stage", name=name, outcome="skipped", seconds=None, detail=reason, metrics=[])
        return False
