"""Judges what tables say, beyond their form: order, uniqueness, sources, dates, references."""

from __future__ import annotations

import itertools
from datetime import date
from typing import TYPE_CHECKING, Any

from envcheck.errors import TableError
from envcheck.matrix import schema
from envcheck.matrix.validate import form_problems, row_key, sections
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from envcheck.matrix.loader import Matrix


def problems(matrix: Matrix, today: date | None = None) -> tuple[str, ...]:
    """Everything that is wrong with well-formed tables, one line per problem.

    Args:
        matrix: the tables; all of them are read.
        today: the day that no date may lie after; the current one when absent.

    Raises:
        TableError: a table is not well-formed in the first place.
    """
    matrix.load_all()
    return everything(matrix, today=today)


def everything(
    matrix: Matrix, *, whole: Matrix | None = None, today: date | None = None
) -> tuple[str, ...]:
    """Everything that is wrong with tables, in form or in content, one line per problem.

    A table that is not well-formed does not keep the others from being judged.

    Args:
        matrix: the tables to judge; all of them are read.
        whole: the tables that references lead to, when `matrix` is only a part of them.
        today: the day that no date may lie after; the current one when absent.
    """
    day = (today or date.today()).isoformat()
    found: list[str] = []
    titles: dict[str, tuple[str, str | None]] = {}
    for name in matrix.names():
        try:
            table = matrix.table(name)
        except TableError as error:
            found += str(error).splitlines()
            continue
        # A compiled table was never looked at since it was built.
        form = [f"{name}.toml: {text}" for text in form_problems(dict(table), name)]
        found += form
        if form:
            continue
        found += [f"{name}.toml: {text}" for text in _rows(table, name)]
        found += [f"{name}.toml: {text}" for text in _sources(table, day, titles)]
        if name == schema.SymptomRow.table:
            found += [f"{name}.toml: {text}" for text in _symptoms(table)]
    for judge in (_floors, _cuda_references, _branch_references, _gpu_references, _families):
        try:
            found += judge(whole or matrix)
        except TableError:
            continue  # of a table that was named above
    return tuple(found)


def _rows(table: Mapping[str, Any], name: str) -> Iterator[str]:
    for section, kind in sections(name).items():
        rows = table.get(section, [])
        if isinstance(rows, dict):
            continue
        keys = [row_key(kind, row) for row in rows]
        for number, (before, after) in enumerate(itertools.pairwise(keys), 2):
            fields = ", ".join(kind.key)
            if before == after:
                yield f"[[{section}]] row {number}: {fields}: same as the row before"
            elif before > after:
                yield f"[[{section}]] row {number}: {fields}: out of order"


def _symptoms(table: Mapping[str, Any]) -> Iterator[str]:
    from envcheck.matrix.symptoms import row_problems

    for row in table.get(schema.SymptomRow.section, []):
        for problem in row_problems(row):
            yield f"[[symptom]] {row['name']}: {problem}"


def _sources(
    table: Mapping[str, Any], day: str, titles: dict[str, tuple[str, str | None]]
) -> Iterator[str]:
    if table.get("date", "") > day:
        yield f"date: {table['date']} lies in the future"
    cited = {
        row.get("source")
        for content in table.values()
        if isinstance(content, (list, dict))
        for row in (content if isinstance(content, list) else [content])
        if isinstance(row, dict)
    }
    for number, source in enumerate(table.get("source", ()), 1):
        place = f"[[source]] row {number}"
        if source["id"] not in cited:
            yield f"{place}: id: no row cites {source['id']!r}"
        if source["retrieved"] > day:
            yield f"{place}: retrieved: {source['retrieved']} lies in the future"
        what = (source["title"], source.get("url"))
        if titles.setdefault(source["id"], what) != what:
            yield f"{place}: id: {source['id']!r} is another source in another table"


def _floors(matrix: Matrix) -> Iterator[str]:
    """A newer CUDA never needs an older driver, and a newer branch never reports an older CUDA."""
    toolkits = [(row.cuda, row.driver_linux) for row in matrix.toolkits]
    majors = [(row.cuda_major, row.driver_linux) for row in matrix.minor_floors]
    branches = [(row.branch, row.cuda) for row in matrix.branches]
    yield from _falls(toolkits, "cuda.toml: [[toolkit]]", "driver_linux")
    yield from _falls(majors, "cuda.toml: [[minor_floor]]", "driver_linux")
    yield from _falls(branches, "driver.toml: [[branch]]", "cuda")


def _falls(rows: Sequence[tuple[str, str | None]], place: str, field: str) -> Iterator[str]:
    known = [(key, value) for key, value in rows if value is not None]
    for (_, before), (key, after) in itertools.pairwise(known):
        if Release.parse(after) < Release.parse(before):
            yield f"{place}: {key}: {field}: {after} is lower than {before} before it"


def _families(matrix: Matrix) -> Iterator[str]:
    families = {row.family for row in matrix.distros}
    for package in matrix.distro_packages:
        if package.family not in families:
            name, family = package.package, package.family
            yield f"distro.toml: [[package]]: {name}: no distribution of {family}"


def _cuda_references(matrix: Matrix) -> Iterator[str]:
    file = "frameworks/torch.toml"
    series = {Release.parse(row.cuda).series for row in matrix.toolkits}
    for build in matrix.torch_builds:
        if build.cuda not in series and build.cuda != "cpu":
            yield f"{file}: [[build]]: {build.version}: no CUDA {build.cuda} in cuda.toml"
    torches = {row.version for row in matrix.torch_builds}
    for pair in matrix.companions:
        if pair.torch not in torches:
            yield f"{file}: [[companion]]: {pair.torch}: no such build"


def _branch_references(matrix: Matrix) -> Iterator[str]:
    known = {row.branch for row in matrix.branches}
    named = [
        (f"cuda.toml: [[forward_compat]]: {row.cuda}", branch)
        for row in matrix.forward_compat
        for branch in row.branches
    ]
    named += [
        (f"gpu.toml: [[capability]]: {row.cc}", branch)
        for row in matrix.capabilities
        for branch in (row.min_driver, row.last_driver_branch)
        if branch is not None
    ]
    for place, branch in named:
        if branch not in known:
            yield f"{place}: no branch {branch} in driver.toml"


def _gpu_references(matrix: Matrix) -> Iterator[str]:
    known = {row.cc for row in matrix.capabilities}
    named = [("gpu.toml: [[product]]", row.name, row.cc) for row in matrix.products]
    named += [("pci.toml: [[device]]", row.name, row.cc) for row in matrix.pci_gpus]
    for place, name, cc in named:
        if cc not in known:
            yield f"{place}: {name}: no capability {cc} in gpu.toml"
