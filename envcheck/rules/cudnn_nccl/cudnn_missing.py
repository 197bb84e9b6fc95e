"""cudnn-missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install, pins
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer
    from envcheck.rules.pins import Pin

_CANNOT_OPEN = re.compile(r"libcudnn[\w]*\.so(\.\d+)*: cannot open shared object file")


@rule("cudnn-missing", component="cudnn", when=(facts.needs_gpu, pins.packages_known))
def cudnn_missing(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The cuDNN that a framework requires is installed.

    Why: a framework whose wheel requires `nvidia-cudnn-cuNN` has no cuDNN inside. Without the wheel
    and without another copy on the loader's path it does not import.

    Fix: install the version that it pins.
    """
    for framework in facts.cuda_frameworks(snapshot):
        pin = pins.pin(snapshot, framework, "cudnn")
        said = _CANNOT_OPEN.search(framework.error or "")
        if said is not None:
            evidence = Evidence(label="import error", value=framework.error or "", via="import")
            yield _finding(snapshot, framework, pin, said.group(), evidence)
            continue
        if pin is None or "extra" in pin.requirement.line or snapshot.env.package(pin.name):
            continue
        if snapshot.env.libraries is None:
            yield unknown(
                "cudnn-missing",
                f"{pin.name} is not installed, and which other copy {framework.name} would load "
                "was not read",
            )
        elif not any(each.name == "cudnn" for each in snapshot.env.libraries):
            yield _finding(snapshot, framework, pin, f"{pin.name} is not installed", pin.evidence)


def _finding(
    snapshot: Snapshot, framework: Framework, pin: Pin | None, found: str, evidence: Evidence
) -> Finding:
    if pin is not None:
        version = pin.requirement.exact
        requirement = f"{pin.name}=={version}" if version else pin.name
        needed = f"{requirement}, which {pin.by} requires"
    else:
        requirement = f"{framework.name}=={install.public_version(framework.version)}"
        needed = f"cuDNN {framework.cudnn or ''}".strip() + f" for {install.label(framework)}"
    return finding(
        "cudnn-missing",
        "error",
        "cudnn",
        install.label(framework),
        f"cuDNN, which {framework.name} needs, is missing",
        found=found,
        needed=needed,
        why="The framework loads cuDNN when it starts and holds no copy of its own.",
        fix=(
            Fix(
                title=f"Install the cuDNN that {framework.name} requires",
                commands=install.install(snapshot, (requirement,)),
            ),
        ),
        evidence=(evidence,),
    )
