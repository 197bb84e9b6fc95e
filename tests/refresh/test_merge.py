"""A table brought up to date: what changes, what stays, and what a person is told."""

from __future__ import annotations

from typing import Any

from envcheck.refresh import merge
from envcheck.refresh.derived import Derived, DerivedRow, Scope

OLD, TODAY = "2026-01-01", "2026-12-31"


def build(version: str, **more: Any) -> dict[str, Any]:
    """A row of the torch table."""
    return {
        "version": version,
        "platform": "linux_x86_64",
        "variant": "cu128",
        "cuda": "12.8",
        "index_default": True,
        "cudnn": "9.10.2.21",
        "python": ["cp312", "cp313"],
        "source": "pages",
        "method": "published",
        "confidence": "high",
        **more,
    }


def table(*rows: dict[str, Any]) -> dict[str, Any]:
    """A torch table."""
    return {
        "schema": 1,
        "name": "frameworks/torch",
        "date": OLD,
        "source": [{"id": "pages", "title": "Pages", "url": "https://p", "retrieved": OLD}],
        "build": list(rows),
    }


def read(
    version: str, *, measured: bool = False, note: str | None = None, **more: Any
) -> DerivedRow:
    """The same row as read from a wheel."""
    origin = ("source", "method", "confidence")
    values = {name: value for name, value in build(version).items() if name not in origin}
    return DerivedRow("build", {**values, **more}, "wheels", "Wheels", measured, note)


def compare(
    rows: dict[str, Any], *found: DerivedRow, releases: tuple[str, ...] = (), **unread: list[str]
) -> merge.Outcome:
    derived = Derived(rows=list(found), unread=unread)

    def listed(_section: str, row: dict[str, Any]) -> bool:
        return bool(row["index_default"])

    return merge.compare(derived, Scope(table=rows, releases=releases), listed, TODAY)


def test_nothing_differs_in_another_order() -> None:
    given = table(build("2.8.0"))
    found = compare(given, read("2.8.0", python=["cp313", "cp312"], nccl=None))
    assert found == merge.Outcome((), (), (), ())
    assert merge.applied(given, found, TODAY) == given


def test_a_new_release_is_added_in_its_place() -> None:
    given = table(build("2.8.0"), build("2.10.0"))
    found = compare(given, read("2.8.0"), read("2.9.0", note="withdrawn"), read("2.10.0"))
    result = merge.applied(given, found, TODAY)
    assert [row["version"] for row in result["build"]] == ["2.8.0", "2.9.0", "2.10.0"]
    assert result["build"][1] == {
        **build("2.9.0"),
        "source": "wheels",
        "note": "withdrawn",
    }
    assert list(result["build"][1])[-4:] == ["source", "method", "confidence", "note"]
    assert result["date"] == TODAY
    assert result["source"][1] == {"id": "wheels", "title": "Wheels", "retrieved": TODAY}
    assert given == table(build("2.8.0"), build("2.10.0"))


def test_a_published_row_is_corrected_field_by_field() -> None:
    old = build("2.8.0", cudnn="9.9", nccl="2.27.3", arches=["sm_90"], confidence="medium")
    found = compare(table(old), read("2.8.0", nccl=None))
    (change,) = found.changes
    # What was not looked for stays, and is no surer than it was.
    expected = {**old, "cudnn": "9.10.2.21", "source": "wheels"}
    del expected["nccl"]
    assert change.row == expected


def test_a_row_read_as_a_whole_is_sure() -> None:
    found = compare(table(build("2.8.0", cudnn="9.9", confidence="low")), read("2.8.0"))
    assert found.changes[0].row["confidence"] == "high"


def test_a_note_does_not_outlive_the_origin_it_speaks_of() -> None:
    note = "it was not opened"
    found = compare(table(build("2.8.0", cudnn="9.9", note=note)), read("2.8.0"))
    assert "note" not in found.changes[0].row
    old = build("2.8.0", cudnn="9.9", note=note, source="wheels")
    found = compare(table(old), read("2.8.0"))
    assert found.changes[0].row["note"] == note


def test_a_measured_row_is_never_changed() -> None:
    old = build("2.8.0", cudnn="9.9", method="measured")
    given = table(old)
    found = compare(given, read("2.8.0", python=["cp312", "cp313", "cp314"], measured=True))
    assert found.changes == ()
    assert merge.applied(given, found, TODAY) == given
    name = "build 2.8.0 linux_x86_64 cu128"
    assert found.contradicted == (
        f"{name}: cudnn: the table says 9.9, the wheels say 9.10.2.21",
        f"{name}: python: the table says cp312 cp313, the wheels say cp312 cp313 cp314",
    )


def test_what_was_opened_is_measured_from_then_on() -> None:
    found = compare(table(build("2.8.0")), read("2.8.0", arches=["sm_90"], measured=True))
    assert found.changes[0].row["method"] == "measured"
    assert found.changes[0].row["arches"] == ["sm_90"]


def test_rows_that_the_index_no_longer_has_are_listed_and_stay() -> None:
    given = table(build("2.7.0"), build("2.8.0"), build("2.8.0", index_default=False, variant="x"))
    found = compare(given, read("2.8.0"))
    assert found.vanished == ("build 2.7.0 linux_x86_64 cu128",)
    assert merge.applied(given, found, TODAY) == given


def test_what_was_not_asked_for_or_not_read_has_not_vanished() -> None:
    given = table(build("2.7.0"), build("2.8.0"))
    assert compare(given, read("2.8.0"), releases=("2.8.0",)).vanished == ()
    assert compare(given, read("2.8.0"), **{"2.7.0": ["linux_x86_64"]}).vanished == ()  # type: ignore[arg-type]
    assert compare(given, read("2.8.0"), **{"": ["torchvision"]}).vanished == ()  # type: ignore[arg-type]


def test_a_known_source_keeps_its_title_and_gets_the_day() -> None:
    found = compare(
        table(build("2.8.0", cudnn="9.9")),
        DerivedRow("build", read("2.8.0").values, "pages", "Other words"),
    )
    assert found.sources == (
        {"id": "pages", "title": "Pages", "url": "https://p", "retrieved": TODAY},
    )


def test_a_difference_names_the_table() -> None:
    text = merge.difference("a\nb\nc\nd\n", "a\nb\nx\nd\n", "nccl")
    assert text.splitlines() == [
        "--- nccl.toml",
        "+++ nccl.toml (refreshed)",
        "@@ -2,3 +2,3 @@",
        " b",
        "-c",
        "+x",
        " d",
    ]
    assert merge.difference("a\n", "a\n", "nccl") == ""
