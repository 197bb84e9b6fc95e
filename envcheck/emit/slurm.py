"""`envcheck emit slurm`: the health check and the prologue of nodes, as slurmd runs them.

slurmd takes a health check that ends well for done and leaves the node to it, so that the check
itself drains and resumes; a prologue that fails drains its node and puts the job back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import checked
from envcheck.errors import UsageError
from envcheck.planner.lock import lock_text

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock

HEALTH, PROLOG, LOCK, README = (
    "envcheck-health.sh",
    "envcheck-prolog.sh",
    "envcheck.lock",
    "README.md",
)


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """Both scripts, the lock that they compare with, and how they are put in place.

    Raises:
        LockError, UsageError: see `checked`; or the stack needs no GPU.
    """
    checked(lock, options)
    if not describe.has_cuda(lock.stack):
        msg = "the stack of the lock is for the CPU: there are no GPUs to look after"
        raise UsageError(msg)
    about = f"{describe.frameworks(lock.stack)}, on {describe.machine(lock)}"
    return {
        HEALTH: _script(_HEALTH, about),
        PROLOG: _script(_PROLOG, about),
        LOCK: lock_text(lock),
        README: _README.replace("@about@", about),
    }


def _script(text: str, about: str) -> str:
    # Not str.format: shells have braces of their own.
    return text.replace("@about@", about).replace("@common@", _COMMON)


_COMMON = """\
folder=$(dirname "$(readlink -f "$0")")
envcheck=${ENVCHECK:-envcheck}
node=${SLURMD_NODENAME:-$(hostname -s)}

# Judge the node; prints what a reason of Slurm takes: one line, no quotes, not too long.
judge() {
  report=$(timeout "$1" "$envcheck" doctor --json --require-gpu --timeout 10 --against "$folder/envcheck.lock" 2>&1)
  status=$?
  printf '%s' "$report" | python3 -c '
import json, sys
try:
    report = json.load(sys.stdin)
    words = [each["id"] + " (" + each["subject"] + ")" for each in report["findings"] if each["severity"] == "error"]
    words += ["drift: " + each["field"] + " is " + each["found"] for each in report.get("drift") or ()]
except (ValueError, KeyError, TypeError):
    words = []
text = "".join(c if c.isalnum() or c in " .,:()+_-/" else " " for c in ", ".join(words) or "see envcheck doctor")
print("envcheck: " + text[:180])
' || echo "envcheck: see envcheck doctor"
  return "$status"
}
"""

_HEALTH = """\
#!/bin/sh
# HealthCheckProgram of slurm.conf. Made by envcheck: @about@.
# Drains a node with findings, and resumes one that envcheck drained once they are gone. What cannot be determined, or
# takes too long, drains nothing. Always ends well: slurmd only logs how a health check ends.
set -u
@common@
reason_of_node() {
  scontrol show node --oneliner "$node" | sed -n 's/.* Reason=\\(.*\\)/\\1/p' | sed 's/ \\[[^]]*\\].*//'
}

# slurmd ends a health check after a minute.
reason=$(judge 50)
status=$?
now=$(reason_of_node)
case $status in
  0)
    case $now in
      envcheck:*)
        logger -t envcheck "$node: resumed, nothing is found any more" || :
        scontrol update NodeName="$node" State=RESUME
        ;;
    esac
    ;;
  1)
    # A reason that a person gave stays.
    case $now in
      '' | none | envcheck:*)
        if [ "$now" != "$reason" ]; then
          logger -t envcheck "$node: drained, $reason" || :
          scontrol update NodeName="$node" State=DRAIN Reason="$reason"
        fi
        ;;
    esac
    ;;
  *)
    logger -t envcheck "$node: not judged, envcheck ended with $status" || :
    ;;
esac
exit 0
"""

_PROLOG = """\
#!/bin/sh
# Prolog of slurm.conf. Made by envcheck: @about@.
# A job that has GPUs does not start on a node with findings: the node drains, with the reason, and the job goes back
# into the queue. What cannot be determined, or takes too long, stops no job.
set -u
@common@
case ${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}} in
  '' | NoDevFiles) exit 0 ;;
esac
# A job's own share of the GPUs is not what is judged.
unset CUDA_VISIBLE_DEVICES
reason=$(judge 30)
status=$?
if [ "$status" -eq 1 ]; then
  logger -t envcheck "$node: job ${SLURM_JOB_ID:-} refused, $reason" || :
  scontrol update NodeName="$node" State=DRAIN Reason="$reason" || :
  exit 1
fi
exit 0
"""

_README = """\
# envcheck for Slurm

@about@.

| file | where it is named | what it does |
|---|---|---|
| `envcheck-health.sh` | `HealthCheckProgram` | drains a node with findings, and resumes it once they are gone |
| `envcheck-prolog.sh` | `Prolog` | keeps a job with GPUs off a node with findings |
| `envcheck.lock` | beside the scripts | what nodes are compared with |

Put the folder on every node, as `/etc/slurm/envcheck` here, with envcheck itself installed, and the scripts made
programs (`chmod 755 *.sh`):

```
HealthCheckProgram=/etc/slurm/envcheck/envcheck-health.sh
HealthCheckInterval=600
HealthCheckNodeState=ANY,CYCLE
Prolog=/etc/slurm/envcheck/envcheck-prolog.sh
```

`scontrol reconfigure` makes both count. `sinfo --list-reasons` shows what was found:

```
REASON               USER      TIMESTAMP           NODELIST
envcheck: gpu-fell-o root      2026-12-01T06:00:00 gpu07
```

A reason that a person gave is never replaced, and a node that a person drained is never resumed. `ENVCHECK` in the
environment of slurmd names the program where it is not on the path. Only errors drain: what envcheck cannot determine,
and what it does not finish in time, goes to the system's log.
"""
