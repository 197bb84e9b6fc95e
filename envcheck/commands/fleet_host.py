"""What runs on a host that `envcheck fleet run` asks: it answers the probe's questions, raw.

The probe itself runs here to put them, since each depends on answers before it. What it makes of
them is interpreted anew where it is judged; what went wrong on the way does not lose the answers.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from envcheck.errors import EnvcheckError
from envcheck.model.codec import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.snapshot import Snapshot
    from envcheck.probe.source import Source

_NAMING = ("HOME", "USER", "LOGNAME", "SUDO_USER", "HOSTNAME")
"""Variables whose values must be known to be left out of reports."""


def main(options: str) -> int:
    """Ask this machine and print one line of JSON.

    Args:
        options: JSON of `python`, `deep`, `smoke` and `timeout`, as `envcheck doctor` has them.

    Returns:
        0; what went wrong is part of the answer.
    """
    from envcheck.probe.live import Live

    sys.stdout.write(json.dumps(answer(Live(), json.loads(options))) + "\n")
    return 0


def answer(source: Source, options: dict[str, Any]) -> dict[str, Any]:
    """All answers of a machine, as plain data that `fleet/host.py` reads."""
    from envcheck.probe.record import Recorder
    from envcheck.probe.snapshot import take_snapshot

    recorder = Recorder(source)
    data: dict[str, Any] = {
        "taken_at": source.taken_at(),
        "interpreter": source.interpreter(),
        "variables": _variables(source.variables),
        "python": options.get("python"),
        "deep": bool(options.get("deep")),
    }
    try:
        snapshot = take_snapshot(
            recorder,
            python=options.get("python"),
            deep=bool(options.get("deep")),
            timeout=float(options.get("timeout") or 10.0),
        )
        if options.get("smoke"):
            data.update(_smoke(snapshot, source, options))
    except EnvcheckError as error:
        data["error"] = str(error)
    except Exception as error:  # the answers so far are worth more than its end
        data["crash"] = f"{type(error).__name__}: {error}"
    return {**data, **recorder.answers()}


def _variables(variables: Mapping[str, str]) -> dict[str, str]:
    from envcheck.probe.redact import recorded_variables

    naming = {name: variables[name] for name in _NAMING if name in variables}
    return {**recorded_variables(variables), **naming}


def _smoke(snapshot: Snapshot, source: Source, options: dict[str, Any]) -> dict[str, Any]:
    from envcheck.commands.smoke import with_smoke

    args = argparse.Namespace(python=options.get("python"))
    tried = with_smoke(snapshot, source, args)
    return {
        "smoke": encode(tried.smoke),
        "said": {
            each.name: {
                "gpu_available": each.gpu_available,
                "arches": None if each.arches is None else list(each.arches),
                "error": each.error,
            }
            for each in tried.env.frameworks or ()
        },
    }
