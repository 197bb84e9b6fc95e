"""Finds the best stack: goes through candidates from the best on, and lets the rules judge.

A candidate is refused without a full judgement where one of the rules' own questions already says
no; what is accepted has always been judged by every rule.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.engine import judge
from envcheck.model.base import model
from envcheck.model.plan import Rejection
from envcheck.planner.bundle import (
    Bundle,
    Conflict,
    asks_of,
    environment,
    inconsistent,
    share,
)
from envcheck.planner.libraries import add_libraries, releases
from envcheck.planner.machine import HOST_FINDINGS, hypothetical, wants_gpu
from envcheck.planner.options import options
from envcheck.planner.preference import listed_arches, min_driver, option_key
from envcheck.planner.pythons import in_order
from envcheck.rules import all_rules, arch, builds, compat
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Finding, Report
    from envcheck.model.plan import Request, Target
    from envcheck.model.snapshot import Snapshot
    from envcheck.planner.options import Option
    from envcheck.planner.wants import Wants

MOST_JUDGED = 40
"""Candidates with warnings that are judged before the best of them is taken."""
MOST_STEPS = 20000
"""Combinations that are looked at before a search is given up."""
MOST_REFUSED = 60
"""Whole stacks that are refused before a search is given up."""
LIBRARY_FINDINGS = (
    "extension-built-for-other-torch",
    "extension-built-for-other-cuda",
    "library-requires-other-framework",
)
SHARED_FINDINGS = ("mixed-cuda-majors", "cudnn-version-mismatch", "nccl-version-mismatch")


@model
class Found:
    """The best stack, and what was refused on the way to it.

    Attributes:
        bundle: the environment; None when there is none.
        python: its Python.
        report: the judgement of it.
        rank: place in the order of preference, to compare two searches by: smaller is better.
        refused: better candidates, best first.
    """

    bundle: Bundle | None = None
    python: str = ""
    report: Report | None = None
    rank: tuple[object, ...] = ()
    refused: tuple[Rejection, ...] = ()


def search(
    matrix: Matrix, request: Request, wants: Wants, machine: Snapshot | None = None
) -> Found:
    """The best stack for a request."""
    return _Search(matrix, request, wants, machine).run()


class _Search:
    def __init__(
        self, matrix: Matrix, request: Request, wants: Wants, machine: Snapshot | None
    ) -> None:
        self.matrix, self.wants, self.machine = matrix, wants, machine
        self.target = request.target
        self.base = hypothetical(matrix, self.target, machine)
        self.facts = compat.driver_facts(self.base)
        self.refused: dict[str, Rejection] = {}
        self.alike: dict[object, Conflict | None] = {}
        self.below: dict[str, Conflict | None] = {}
        self.alone: dict[str, Conflict | None] = {}
        self.steps = 0
        self.whole_refused = 0
        self.judged = 0
        self.best: Found | None = None
        self.best_weight = 0
        self.usual = _warnings(judge(self.base, matrix, all_rules()))
        key = option_key(matrix, request.prefer, self.target.arches)
        gpu = wants_gpu(self.target)
        self.lists: list[list[tuple[Option, tuple[object, ...]]]] = []
        for name in wants.frameworks:
            known = options(matrix, name, self.target.platform, gpu=gpu)
            asked = [each for each in known if wants.allows(name, _with_tag(each))]
            self.lists.append([(each, key(each)) for each in sorted(asked, key=key)])

    def run(self) -> Found:
        against = host_problem(self.matrix, self.target, self.base, self.machine)
        if against is not None:
            return Found(refused=(against,))
        for name, listed in zip(self.wants.frameworks, self.lists, strict=True):
            if not listed:
                line = self.wants.asked(name).line or name
                where = self.target.platform
                reason = f"no build in the tables for {where} is {line}"
                self.refused[line] = Rejection(stack=line, reason=reason)
        for name in self.wants.libraries:
            if not any(self.wants.allows(name, e.version) for e in releases(self.matrix, name)):
                line = self.wants.asked(name).line
                reason = f"no release of {name} in the tables is {line}"
                self.refused[line] = Rejection(stack=line, reason=reason)
        if not self.refused:
            for chosen, rank in self._combinations((), ()):
                if self._try(chosen, rank):
                    break
        found = self.best or Found()
        return dataclasses.replace(found, refused=tuple(self.refused.values()))

    # -- candidates --------------------------------------------------------------------------------

    def _combinations(
        self, chosen: tuple[Option, ...], rank: tuple[object, ...]
    ) -> Iterator[tuple[tuple[Option, ...], tuple[object, ...]]]:
        """Combinations of builds that nothing speaks against so far, best first."""
        if len(chosen) == len(self.lists):
            yield chosen, rank
            return
        for option, key in self.lists[len(chosen)]:
            self.steps += 1
            if self.steps > MOST_STEPS:
                return
            problem = self._alone(option)
            if problem is None and chosen:
                problem = self._together((*chosen, option))
            if problem is None and len(self.lists) > 1:
                problem = self._hopeless(option, len(chosen)) or self._below(option)
            if problem is not None:
                self._refuse((*chosen, option), problem)
                continue
            yield from self._combinations((*chosen, option), (*rank, key))

    def _refuse(self, chosen: tuple[Option, ...], problem: Conflict, extra: str = "") -> None:
        label = " with ".join(each.label for each in chosen) + extra
        self.refused.setdefault(
            label, Rejection(stack=label, findings=problem.findings, reason=problem.reason)
        )

    def _alone(self, option: Option) -> Conflict | None:
        """What speaks against one build, by the questions that the rules ask too."""
        if option.label not in self.alone:
            self.alone[option.label] = self._alone_now(option)
        return self.alone[option.label]

    def _alone_now(self, option: Option) -> Conflict | None:
        if option.weak:
            return Conflict(reason="its table row is of low confidence: never recommended")
        python = self.target.python
        if python is not None and python not in option.pythons:
            return Conflict(
                reason=f"no wheel for Python {python}, only for {', '.join(option.pythons)}",
                findings=("no-wheel-for-python",),
            )
        glibc = getattr(option.row, "glibc", None)
        libc = Release.maybe(self.base.host.os.glibc)
        if glibc and libc is not None and libc < Release.parse(glibc):
            return Conflict(
                reason=f"needs glibc {glibc}, found {libc}", findings=("glibc-too-old",)
            )
        if not wants_gpu(self.target):
            return None
        if option.name == "tensorflow" and not option.pins[0].extras:
            return Conflict(
                reason="it has no extra that brings CUDA libraries",
                findings=("cuda-libraries-missing",),
            )
        if option.cuda is None:
            return Conflict(reason="which CUDA it was built for is not known")
        if self.target.driver is not None:
            answer = compat.driver_runs(self.matrix, self.facts, option.cuda)
            if answer.verdict != "yes":
                return Conflict(
                    reason=answer.reason,
                    findings=("driver-too-old",) if answer.verdict == "no" else (),
                )
        return self._code(option)

    def _code(self, option: Option) -> Conflict | None:
        """Whether a build has code for a GPU of the target."""
        listed = listed_arches(self.matrix, option)
        if option.name == "tensorflow" or not self.target.arches:
            return None
        if listed is None:
            return Conflict(reason="which GPUs it has code for is not known")
        chips = builds.tegra(self.matrix)
        answers = [arch.coverage(listed, cc, tegra=chips) for cc in self.target.arches]
        if any(each.runs for each in answers):
            return None
        worst = answers[0]
        ids = {
            "no-build-too-new": ("gpu-older-than-build",),
            "no-build-too-old": ("gpu-newer-than-build",),
            "no-skipped": ("gpu-newer-than-build",),
        }
        return Conflict(reason=worst.reason, findings=ids.get(worst.verdict, ()))

    def _together(self, chosen: tuple[Option, ...]) -> Conflict | None:
        """What speaks against some builds in one environment."""
        pythons = self._pythons(chosen)
        if not pythons:
            return Conflict(
                reason="no Python has wheels of all of them", findings=("no-wheel-for-python",)
            )
        shared = share(self.matrix, self.base, chosen)
        if isinstance(shared, Conflict):
            return shared
        # All that the rules about shared wheels read; many releases are alike in it.
        alike = (
            shared,
            tuple((each.name, each.cuda, self._asks(each)) for each in chosen),
        )
        if alike not in self.alike:
            snapshot = environment(self.base, Bundle(options=chosen, nvidia=shared), pythons[0])
            report = judge(snapshot, self.matrix, all_rules(), chosen=SHARED_FINDINGS)
            self.alike[alike] = _refusal(report)
        return self.alike[alike]

    def _asks(self, option: Option) -> tuple[str, ...]:
        return tuple(ask.line for ask in asks_of(self.matrix, self.base, option))

    def _hopeless(self, option: Option, place: int) -> Conflict | None:
        """Why no build of some other framework goes together with this one."""
        for at, listed in enumerate(self.lists):
            if at == place:
                continue
            first: Conflict | None = None
            for other, _ in listed:
                problem = self._alone(other) or self._together((option, other))
                if problem is None:
                    first = None
                    break
                first = first or problem
            if first is not None:
                return first
        return None

    def _below(self, option: Option) -> Conflict | None:
        """Why no library on top goes together with one build, whatever else is chosen."""
        if not self.wants.libraries:
            return None
        if option.label not in self.below:
            self.below[option.label] = self._below_now(option)
        return self.below[option.label]

    def _below_now(self, option: Option) -> Conflict | None:
        first: Conflict | None = None
        for python in self._pythons((option,)):
            bundle = Bundle(options=(option,))
            full = add_libraries(self.matrix, bundle, self.wants, python, partial=True)
            if isinstance(full, Conflict):
                first = first or full
                continue
            snapshot = environment(self.base, full, python)
            refusal = _refusal(judge(snapshot, self.matrix, all_rules(), chosen=LIBRARY_FINDINGS))
            if refusal is None:
                return None
            first = first or refusal
        return first

    def _pythons(self, chosen: tuple[Option, ...]) -> list[str]:
        common = set.intersection(*(set(each.pythons) for each in chosen))
        if self.target.python is not None:
            common &= {self.target.python}
        return in_order(self.matrix, common)

    # -- judgement ---------------------------------------------------------------------------------

    def _try(self, chosen: tuple[Option, ...], rank: tuple[object, ...]) -> bool:
        """Judge one combination; whether the search is over."""
        problem: Conflict | None = None
        for python in self._pythons(chosen):
            full = self._filled(chosen, python)
            if isinstance(full, Conflict):
                problem = problem or full
                continue
            report = self._judge(full, python)
            refusal = _refusal(report)
            if refusal is not None:
                problem = problem or refusal
                self.whole_refused += 1
                continue
            self.judged += 1
            weight = len(_warnings(report) - self.usual)
            if self.best is None or weight < self.best_weight:
                self.best = Found(bundle=full, python=python, report=report, rank=(weight, *rank))
                self.best_weight = weight
            if weight == 0 or self.judged >= MOST_JUDGED:
                return True
            problem = None
            break
        if problem is not None:
            self._refuse(chosen, problem)
            if self.whole_refused >= MOST_REFUSED:
                self.refused["more"] = Rejection(
                    stack="older combinations",
                    reason=f"not looked at: {MOST_REFUSED} better ones were refused",
                )
                return True
        return False

    def _filled(self, chosen: tuple[Option, ...], python: str) -> Bundle | Conflict:
        shared = share(self.matrix, self.base, chosen)
        if isinstance(shared, Conflict):
            return shared
        bundle = Bundle(options=chosen, nvidia=shared)
        full = add_libraries(self.matrix, bundle, self.wants, python)
        if isinstance(full, Conflict):
            return full
        return inconsistent(environment(self.base, full, python)) or full

    def _judge(self, bundle: Bundle, python: str) -> Report:
        """All rules; where the driver is free, on the oldest one that is said to do."""
        base, target = self.base, self.target
        needed = min_driver(self.matrix, bundle.options, target.arches)
        if target.driver is None and needed is not None:
            target = dataclasses.replace(target, driver=needed)
            base = hypothetical(self.matrix, target, self.machine)
            against = host_problem(self.matrix, target, base, None)
            if against is not None and base.host.gpus:
                base = dataclasses.replace(base, host=dataclasses.replace(base.host, gpus=()))
        return judge(environment(base, bundle, python), self.matrix, all_rules())


def _with_tag(option: Option) -> str:
    variant = option.planned.variant
    return f"{option.version}+{variant}" if variant else option.version


def _warnings(report: Report) -> set[tuple[str, str]]:
    """Warnings by id and subject; those of the bare machine are no stack's fault."""
    return {(each.id, each.subject) for each in report.findings if each.severity == "warning"}


def _refusal(report: Report) -> Conflict | None:
    """The errors of a judgement as a refusal."""
    errors = [each for each in report.findings if each.severity == "error"]
    return Conflict(reason=words(errors[0]), findings=_ids(errors)) if errors else None


def _ids(findings: list[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.id for each in findings))


def words(finding: Finding) -> str:
    """A finding in one line."""
    return f"{finding.title} (found {finding.found}; needed {finding.needed})"


def host_problem(
    matrix: Matrix, target: Target, base: Snapshot, machine: Snapshot | None
) -> Rejection | None:
    """What is wrong between the driver and the GPUs, whatever the stack.

    Rules judge GPUs that the driver does not report, so they are asked about the target with its
    GPUs on the bus only; a real machine whose driver reports them needs no such question.
    """
    if target.driver is None or not base.host.gpus:
        return None
    if machine is not None and machine.host.gpus:
        return None
    unseen = dataclasses.replace(base, host=dataclasses.replace(base.host, gpus=()))
    report = judge(unseen, matrix, all_rules(), chosen=HOST_FINDINGS)
    refusal = _refusal(report)
    if refusal is None:
        return None
    names = ", ".join(dict.fromkeys(target.gpus)) or "these GPUs"
    return Rejection(
        stack=f"every stack on driver {target.driver} with {names}",
        findings=refusal.findings,
        reason=refusal.reason,
    )
