"""What runs on a host that `envcheck fleet run` asks: the probe alone, its answer on stdout.

It is sent there with the packages that it needs and may run in Python 3.8, see `fleet/archive.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from envcheck.errors import EnvcheckError
from envcheck.model.codec import encode


def main(options: str) -> int:
    """Probe this machine.

    Args:
        options: JSON of `python`, `deep`, `smoke` and `timeout`, as `envcheck doctor` has them.

    Returns:
        0; what went wrong is an answer, too.
    """
    answer: dict[str, Any]
    try:
        answer = {"snapshot": encode(_probe(json.loads(options)))}
    except EnvcheckError as error:
        answer = {"error": str(error)}
    except Exception as error:  # it is shown where the host was asked from
        answer = {"error": f"the probe crashed: {type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def _probe(options: dict[str, Any]) -> Any:
    from envcheck.probe.live import Live
    from envcheck.probe.snapshot import take_snapshot

    source = Live()
    snapshot = take_snapshot(
        source,
        python=options.get("python"),
        deep=bool(options.get("deep")),
        timeout=float(options.get("timeout") or 10.0),
    )
    if options.get("smoke"):
        from envcheck.commands.smoke import with_smoke

        args = argparse.Namespace(python=options.get("python"))
        snapshot = with_smoke(snapshot, source, args)
    return snapshot
