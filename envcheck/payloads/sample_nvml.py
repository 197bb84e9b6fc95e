"""Samples the GPUs through NVML until its input is closed; one JSON line per sample.

Run as a file, in a child process: NVML can hang or crash, and its time is not ours. The first line
holds what does not change (`start`), or why there is nothing to sample (`failed`); then come
samples (`t` on the monotonic clock, `gpus`), at last what sampling cost (`end`). Counters that a
GPU does not have are left out. Utilisation, power and GPM metrics are read every time, the rest
every half second, so that sampling stays cheap.

    python sample_nvml.py --interval 0.1 --gpus 0,1 [--seconds 10] [--path FOLDER-OF-PYNVML]
"""

import argparse
import contextlib
import json
import select
import sys
import time

SLOW_SECONDS = 0.5

GPM = {
    1: "active",
    2: "sm",
    3: "occ",
    5: "tensor",
    10: "dram",
    11: "fp64",
    12: "fp32",
    13: "fp16",
    20: "pcie_out",
    21: "pcie_in",
    60: "nvl_in",
    61: "nvl_out",
}
MIB_RATES = (20, 21, 60, 61)
"""GPM metrics in MiB/s; written as MB/s."""

THROTTLE = {
    0x0000000000000001: "idle",
    0x0000000000000002: "application-clocks",
    0x0000000000000004: "sw-power-cap",
    0x0000000000000008: "hw-slowdown",
    0x0000000000000010: "sync-boost",
    0x0000000000000020: "sw-thermal",
    0x0000000000000040: "hw-thermal",
    0x0000000000000080: "hw-power-brake",
    0x0000000000000100: "display-clocks",
}

NEVER = (2, 3, 4, 13, 25)
"""NVML errors that stay: invalid, not supported, no permission, no such function, old structure."""

LINK_COUNT, LINK_SPEED, LINK_SENT, LINK_RECEIVED, ALL_LINKS = 91, 90, 138, 139, 0xFFFFFFFF
"""NVML's field ids of NVLink: number of links, MB/s of one, KiB sent and received over all."""


def text(value):
    """NVML's bindings gave bytes once and text now."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def write(line):
    """Print one JSON line at once."""
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Asker(object):
    """Calls NVML, keeps the first error of each question, and counts what the calls cost."""

    def __init__(self, nvml):
        """Take the binding."""
        self.nvml = nvml
        self.errors = {}
        self.refused = set()
        self.cost = {}

    def __call__(self, function, *args):
        """The answer, None when there is none; what can never be answered is asked once."""
        if function in self.refused:
            return None
        call = getattr(self.nvml, function, None)
        if call is None:
            self.errors[function] = "pynvml has no " + function
            self.refused.add(function)
            return None
        begun = time.perf_counter()
        try:
            return call(*args)
        except Exception as error:
            self.errors.setdefault(function, text(error))
            if getattr(error, "value", None) in NEVER:
                self.refused.add(function)
            return None
        finally:
            spent = self.cost.setdefault(function, [0, 0.0])
            spent[0] += 1
            spent[1] += time.perf_counter() - begun


class Device(object):
    """One GPU."""

    def __init__(self, nvml, index):
        """Open it; raises NVML's error when that fails."""
        self.nvml = nvml
        self.index = index
        self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self.ask = Asker(nvml)
        self.gpm = self._gpm()
        self.links = None
        self.slow_at = 0.0

    def facts(self):
        """What does not change."""
        ask, handle = self.ask, self.handle
        name = ask("nvmlDeviceGetName", handle)
        capability = ask("nvmlDeviceGetCudaComputeCapability", handle)
        memory = ask("nvmlDeviceGetMemoryInfo", handle)
        limit = ask("nvmlDeviceGetEnforcedPowerLimit", handle)
        mig = ask("nvmlDeviceGetMigMode", handle)
        return {
            "index": self.index,
            "name": text(name) if name is not None else None,
            "arch": "%d.%d" % tuple(capability) if capability is not None else None,
            "memory_total": int(memory.total) if memory is not None else None,
            "power_limit": limit / 1000.0 if limit is not None else None,
            "clock_max": ask("nvmlDeviceGetMaxClockInfo", handle, 1),
            "pcie_generation": ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            "pcie_width": ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
            "nvlink_limit": self._link_limit(),
            "mig": bool(mig[0]) if mig is not None else None,
            "gpm": self.gpm is not None,
        }

    def sample(self, now):
        """Counters of this moment."""
        ask, handle = self.ask, self.handle
        found = {"i": self.index}
        rates = ask("nvmlDeviceGetUtilizationRates", handle)
        if rates is not None:
            found["util"] = int(rates.gpu)
        power = ask("nvmlDeviceGetPowerUsage", handle)
        if power is not None:
            found["power"] = round(power / 1000.0, 1)
        if self.gpm is not None:
            self._add_gpm(found)
        if now >= self.slow_at:
            self.slow_at = now + SLOW_SECONDS
            self._add_slow(found, now)
        return found

    def _add_slow(self, found, now):
        ask, handle = self.ask, self.handle
        memory = ask("nvmlDeviceGetMemoryInfo", handle)
        if memory is not None:
            found["mem"] = int(memory.used)
        for key, function, args in (
            ("temp", "nvmlDeviceGetTemperature", (0,)),
            ("clock", "nvmlDeviceGetClockInfo", (1,)),
            ("replay", "nvmlDeviceGetPcieReplayCounter", ()),
        ):
            value = ask(function, handle, *args)
            if value is not None:
                found[key] = int(value)
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        if reasons is None:
            reasons = ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is not None:
            found["throttle"] = sorted(name for bit, name in THROTTLE.items() if int(reasons) & bit)
        running = ask("nvmlDeviceGetComputeRunningProcesses", handle)
        if running is not None:
            found["procs"] = len(running)
        if self.gpm is None:
            # Each of these two takes twenty milliseconds: NVML counts for that long.
            for key, counter in (("pcie_out", 0), ("pcie_in", 1)):
                rate = ask("nvmlDeviceGetPcieThroughput", handle, counter)
                if rate is not None:
                    found[key] = round(rate * 1.024e-3, 1)
            self._add_links(found, now)

    def _gpm(self):
        """Two samples to compare and the list of metrics; None where there is no GPM."""
        nvml = self.nvml
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(self.handle).isSupportedDevice:
                return None
            wanted = nvml.c_nvmlGpmMetricsGet_t()
            wanted.version = nvml.NVML_GPM_METRICS_GET_VERSION
            wanted.numMetrics = len(GPM)
            for at, id in enumerate(GPM):
                wanted.metrics[at].metricId = id
            older, newer = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
            nvml.nvmlGpmSampleGet(self.handle, older)
        except Exception as error:
            # Bindings and drivers before GPM, GPUs without it, users who may not.
            self.ask.errors["gpm"] = text(error)
            return None
        return [older, newer, wanted]

    def _add_gpm(self, found):
        older, newer, wanted = self.gpm
        if self.ask("nvmlGpmSampleGet", self.handle, newer) is None:
            return
        wanted.sample1, wanted.sample2 = older, newer
        if self.ask("nvmlGpmMetricsGet", wanted) is not None:
            for at, (id, name) in enumerate(GPM.items()):
                metric = wanted.metrics[at]
                value = float(metric.value)
                # Not a number where the GPU has no such unit.
                if metric.nvmlReturn == 0 and 0.0 <= value < 1e9:
                    found[name] = round(value * 1.048576 if id in MIB_RATES else value, 2)
        self.gpm[0], self.gpm[1] = newer, older

    def _link_limit(self):
        """MB/s of all NVLinks in one direction."""
        values = self._fields([LINK_COUNT, LINK_SPEED])
        return values[0] * values[1] if values is not None and values[0] else None

    def _add_links(self, found, now):
        values = self._fields([(LINK_RECEIVED, ALL_LINKS), (LINK_SENT, ALL_LINKS)])
        if values is None:
            return
        if self.links is not None:
            then, before = self.links
            seconds = max(now - then, 1e-3)
            for key, new, old in zip(("nvl_in", "nvl_out"), values, before):
                found[key] = round((new - old) * 1.024e-3 / seconds, 1)
        self.links = (now, values)

    def _fields(self, ids):
        answers = self.ask("nvmlDeviceGetFieldValues", self.handle, ids)
        if answers is None or any(each.nvmlReturn for each in answers):
            return None
        return [int(each.value.ullVal) for each in answers]


def binding():
    """NVIDIA's pynvml, initialised; exits with a `failed` line when there is none."""
    try:
        import pynvml

        if not hasattr(pynvml, "nvmlDeviceGetHandleByIndex"):
            raise ImportError("the module pynvml is not NVIDIA's")
    except Exception as error:
        write({"failed": {"code": None, "message": "%s: %s" % (type(error).__name__, error)}})
        raise SystemExit(1) from None
    try:
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetCount()
    except Exception as error:
        code = getattr(error, "value", None)
        write({"failed": {"code": code, "message": text(error)}})
        raise SystemExit(1) from None


def wait(until):
    """Sleep until a moment; False when the input was closed, which ends the sampling."""
    while True:
        left = until - time.monotonic()
        if left <= 0:
            return True
        ready, _, _ = select.select([sys.stdin], [], [], left)
        if ready and not sys.stdin.readline():
            return False


def main():
    """Sample and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--interval", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--gpus", default="")
    parser.add_argument("--path", action="append", default=[])
    args = parser.parse_args()
    # The script's folder and the working directory must not shadow the real pynvml.
    here = __file__.rpartition("/")[0]
    sys.path[:] = [each for each in sys.path if each not in ("", ".", here)] + args.path
    nvml, total = binding()
    wanted = [int(each) for each in args.gpus.split(",") if each] or list(range(total))
    devices, errors = [], {}
    for index in wanted:
        try:
            devices.append(Device(nvml, index))
        except Exception as error:
            errors[str(index)] = text(error)
    begun = time.monotonic()
    start = {"interval": args.interval, "t": begun, "total": total, "errors": errors}
    with contextlib.suppress(Exception):
        start["driver"] = text(nvml.nvmlSystemGetDriverVersion())
    start["gpus"] = [each.facts() for each in devices]
    write({"start": start})
    spent, tick = time.process_time(), begun
    while devices:
        tick = max(tick + args.interval, time.monotonic())
        if tick - begun > args.seconds or not wait(tick):
            break
        now = time.monotonic()
        write({"t": round(now, 4), "gpus": [each.sample(now) for each in devices]})
    calls: "dict[str, list[float]]" = {}
    failures: "dict[str, str]" = {}
    for each in devices:
        failures.update(each.ask.errors)
        for name, (count, seconds) in each.ask.cost.items():
            old = calls.setdefault(name, [0, 0.0])
            calls[name] = [old[0] + count, round(old[1] + seconds, 6)]
    write(
        {
            "end": {
                "cpu": round(time.process_time() - spent, 4),
                "seconds": round(time.monotonic() - begun, 4),
                "calls": calls,
                "errors": failures,
            }
        }
    )


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main()
