"""Whether a driver runs what was built with a CUDA release: the three roads, kept apart.

- *Backward compatibility*: a driver whose own CUDA interface is at least that release runs it.
- *Minor-version compatibility*: a driver at or above the floor of a CUDA major runs everything
  built
  with that major, but it does not compile PTX of a newer toolkit, and it does not lend features
  that came later.
- *Forward compatibility*: a newer libcuda (cuda-compat) in front of an older kernel module, on GPUs
  that the table marks and on driver branches that the table lists, nowhere else.

All functions are pure, and take facts and tables only; the planner asks the same ones as the rules.
Which machine code runs on which GPU stands in `envcheck.rules.arch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from envcheck.matrix import query
from envcheck.model.base import model
from envcheck.rules import facts as facts_of
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.row import Row
    from envcheck.model.finding import UnknownKind
    from envcheck.model.snapshot import Snapshot

Road = Literal["backward", "minor-version", "forward"]


@model
class DriverFacts:
    """What of a machine decides which CUDA releases its driver runs.

    Attributes:
        version: driver release, in the numbering of the system that owns the driver.
        cuda: CUDA interface of the driver itself, without cuda-compat.
        windows: the numbers are of the Windows driver (WSL too).
        jetson: the driver is part of a Jetson's system, whose numbers follow no table here.
        compat_version: driver release of a cuda-compat libcuda that is in front; None without one.
        compat_works: CUDA initialised through that libcuda, which outranks what tables say.
        gpus: names of the GPUs.
    """

    version: str | None = None
    cuda: str | None = None
    windows: bool = False
    jetson: bool = False
    compat_version: str | None = None
    compat_works: bool = False
    gpus: tuple[str | None, ...] = ()


@model
class DriverAnswer:
    """Whether a driver runs a CUDA release.

    Attributes:
        verdict: yes, no, or unknown.
        via: the road, when the answer is yes.
        reason: one sentence.
        kind: for unknown: a fact is missing, or the release is beyond the tables.
        needed: lowest driver release that would do by the least demanding road; None when not
            known.
        rows: table rows that the answer rests on.
    """

    verdict: Literal["yes", "no", "unknown"]
    reason: str
    via: Road | None = None
    kind: UnknownKind = "missing"
    needed: str | None = None
    rows: tuple[Row, ...] = ()


def driver_facts(snapshot: Snapshot) -> DriverFacts:
    """The facts of a snapshot that `driver_runs` needs."""
    host = snapshot.host
    driver = host.driver
    return DriverFacts(
        version=driver.module_version or driver.version or driver.userspace_version,
        cuda=driver.cuda,
        windows=bool(host.wsl) or host.os.id == "windows",
        jetson=host.jetson is not None,
        compat_version=driver.compat_version if driver.compat_path is not None else None,
        compat_works=facts_of.cuda_ok(snapshot),
        gpus=tuple(each.name for each in host.gpus or ()),
    )


def interface(matrix: Matrix, facts: DriverFacts) -> tuple[Release | None, tuple[Row, ...]]:
    """CUDA interface of a driver itself: as it answered, else of its branch in the table.

    With cuda-compat in front the answer may be the other libcuda's, so the table comes first then.
    """
    read = Release.maybe(facts.cuda)
    if read is not None and facts.compat_version is None:
        return read, ()
    if facts.version is not None and not facts.jetson:
        row = query.branch(matrix, facts.version)
        by_table = Release.maybe(row.cuda) if row is not None else None
        if row is not None and by_table is not None:
            return by_table, (row,)
    return read, ()


def driver_runs(matrix: Matrix, facts: DriverFacts, cuda: str) -> DriverAnswer:
    """Whether a driver runs machine code and libraries of a CUDA release.

    Args:
        matrix: the tables.
        facts: the driver.
        cuda: the release, `12.8` or `12.8.1`.

    Returns:
        The answer, by the first road that is open: backward, minor-version, forward.
    """
    wanted = Release.parse(cuda)
    own, rows = interface(matrix, facts)
    if own is None:
        return _unlisted(matrix, facts, wanted)
    if own.parts[:2] >= wanted.parts[:2]:
        return DriverAnswer(
            verdict="yes",
            via="backward",
            reason=f"the driver's CUDA {own.series} is not older than CUDA {wanted.series}",
            rows=rows,
        )
    newest = Release.maybe(matrix.toolkits[-1].cuda if matrix.toolkits else None)
    if newest is not None and wanted.major > newest.major:
        return DriverAnswer(
            verdict="unknown",
            kind="newer-than-table",
            reason=f"CUDA {wanted.series} is newer than the tables, which end at {newest.series}",
        )
    answer = _minor_version(matrix, facts, own, wanted)
    if answer.verdict == "no" and facts.compat_version is not None:
        return forward_runs(matrix, facts, cuda)
    if answer.verdict == "no" and facts.jetson:
        return DriverAnswer(
            verdict="unknown",
            kind="newer-than-table",
            reason=f"no table says which CUDA releases this Jetson's driver ({own.series}) can be "
            "upgraded to",
        )
    return answer


def _minor_version(
    matrix: Matrix, facts: DriverFacts, own: Release, wanted: Release
) -> DriverAnswer:
    """The floor of a CUDA major, for a driver whose own CUDA is older than the release."""
    floor = query.minor_floor(matrix, str(wanted.major))
    text = (floor.driver_windows if facts.windows else floor.driver_linux) if floor else None
    lowest, version = Release.maybe(text), Release.maybe(facts.version)
    release_row = query.own_driver(matrix, wanted.text)
    if floor is not None and own.major == wanted.major:
        if lowest is None or version is None or facts.jetson or version >= lowest:
            return DriverAnswer(
                verdict="yes",
                via="minor-version",
                reason=f"the driver's CUDA {own.series} and CUDA {wanted.series} are of one major"
                + (f", and {version} is not below {lowest}" if lowest and version else ""),
                rows=(floor,),
            )
    elif floor is not None and lowest is not None and version is not None and version >= lowest:
        return DriverAnswer(
            verdict="unknown",
            reason=f"driver {version} should have CUDA {wanted.major}, but says CUDA {own.series}",
            rows=(floor,),
        )
    needed = lowest or Release.maybe(
        None
        if release_row is None
        else release_row.driver_windows
        if facts.windows
        else release_row.driver_linux
    )
    rows: tuple[Row, ...] = tuple(row for row in (floor, release_row) if row is not None)
    return DriverAnswer(
        verdict="no",
        reason=f"the driver's CUDA {own.series} is older than CUDA {wanted.series}"
        + (f" and the driver is below {needed}" if needed else ""),
        needed=needed.text if needed else None,
        rows=rows,
    )


def _unlisted(matrix: Matrix, facts: DriverFacts, wanted: Release) -> DriverAnswer:
    """A driver whose CUDA interface is neither read nor in the table."""
    version = Release.maybe(facts.version)
    if version is None:
        return DriverAnswer(verdict="unknown", reason="the driver's version is not known")
    if facts.jetson:
        return DriverAnswer(
            verdict="unknown", reason="the CUDA interface of this Jetson's driver was not read"
        )
    newest_branch = matrix.branches[-1] if matrix.branches else None
    newest = Release.maybe(newest_branch.cuda if newest_branch else None)
    if newest_branch is not None and newest is not None:
        beyond = query.driver_newer_than_table(matrix, version.text)
        if beyond and wanted.parts[:2] <= newest.parts[:2]:
            return DriverAnswer(
                verdict="yes",
                via="backward",
                reason=f"driver {version} is newer than every branch of the table, and the newest "
                f"one runs CUDA {newest.series}",
                rows=(newest_branch,),
            )
        if beyond:
            return DriverAnswer(
                verdict="unknown",
                kind="newer-than-table",
                reason=f"driver {version} and CUDA {wanted.series} are both newer than the tables",
            )
    floor = query.minor_floor(matrix, str(wanted.major))
    text = (floor.driver_windows if facts.windows else floor.driver_linux) if floor else None
    lowest = Release.maybe(text)
    if floor is None or lowest is None:
        return DriverAnswer(
            verdict="unknown",
            kind="newer-than-table",
            reason=f"no row says which drivers run CUDA {wanted.major}",
        )
    if version >= lowest:
        return DriverAnswer(
            verdict="yes",
            via="minor-version",
            reason=f"driver {version} is not below {lowest}, the floor of CUDA {wanted.major}",
            rows=(floor,),
        )
    return DriverAnswer(
        verdict="no",
        reason=f"driver {version} is below {lowest}, the floor of CUDA {wanted.major}",
        needed=lowest.text,
        rows=(floor,),
    )


def forward_runs(matrix: Matrix, facts: DriverFacts, cuda: str) -> DriverAnswer:
    """Whether the cuda-compat libcuda that is in front makes a driver run a CUDA release.

    It must be new enough itself, every GPU must be one that the table marks as eligible, and the
    kernel module's branch must be one that the table lists for that compat release.
    """
    wanted = Release.parse(cuda)
    compat = interface(matrix, DriverFacts(version=facts.compat_version))[0]
    if facts.compat_version is None or compat is None:
        return DriverAnswer(
            verdict="unknown", reason="the release of the cuda-compat libcuda is not known"
        )
    if compat.major < wanted.major:
        return DriverAnswer(
            verdict="no",
            reason=f"cuda-compat brings CUDA {compat.series}, older than CUDA {wanted.series}",
        )
    if facts.compat_works:
        return DriverAnswer(
            verdict="yes",
            via="forward",
            reason=f"CUDA initialises through cuda-compat {compat.series}",
        )
    eligible, rows = forward_eligible(matrix, facts.gpus)
    if eligible is False:
        return DriverAnswer(
            verdict="no",
            reason="forward compatibility is not offered on this GPU",
            rows=rows,
        )
    if eligible is None:
        return DriverAnswer(
            verdict="unknown",
            reason="whether forward compatibility is offered on this GPU is not known",
            rows=rows,
        )
    branches = forward_branches(matrix, compat)
    version = Release.maybe(facts.version)
    if branches is None or version is None:
        return DriverAnswer(
            verdict="unknown",
            kind="newer-than-table" if branches is None else "missing",
            reason=f"no row lists the driver branches that cuda-compat {compat.series} works on",
            rows=rows,
        )
    row, listed = branches
    if version.major not in listed and row.confidence == "low":
        return DriverAnswer(
            verdict="unknown",
            kind="newer-than-table",
            reason=f"the list of driver branches for cuda-compat {compat.series} is not complete",
            rows=(*rows, row),
        )
    if version.major not in listed:
        return DriverAnswer(
            verdict="no",
            reason=f"cuda-compat {compat.series} does not work on driver branch {version.major}",
            rows=(*rows, row),
        )
    return DriverAnswer(
        verdict="yes",
        via="forward",
        reason=f"cuda-compat {compat.series} works on branch {version.major} and on this GPU",
        rows=(*rows, row),
    )


def forward_eligible(
    matrix: Matrix, gpus: tuple[str | None, ...]
) -> tuple[bool | None, tuple[Row, ...]]:
    """Whether forward compatibility is offered on every one of some GPUs; None when not known."""
    rows = [query.product(matrix, name) if name else None for name in gpus]
    known = tuple(row for row in rows if row is not None)
    marks = [row.forward_compat if row and row.confidence != "low" else None for row in rows]
    if False in marks:
        return False, known
    if not marks or None in marks:
        return None, known
    return True, known


def forward_branches(matrix: Matrix, compat: Release) -> tuple[Row, frozenset[int]] | None:
    """Driver branches that the compat package of a CUDA release works on; None without a row."""
    row = query.forward_compat(matrix, compat.series)
    if row is None:
        return None
    return row, frozenset(Release.parse(each).major for each in row.branches)


def compiles_ptx(matrix: Matrix, facts: DriverFacts, cuda: str) -> bool | None:
    """Whether a driver compiles PTX that a CUDA release made; the minor-version road does not."""
    own = interface(matrix, facts)[0]
    if own is None:
        return None
    return own.parts[:2] >= Release.parse(cuda).parts[:2]
