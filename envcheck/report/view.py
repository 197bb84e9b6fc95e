"""What a renderer knows besides the report: how the run ended and who reads it."""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model


@model
class Check:
    """One finding id that the run could have given, for formats that list what was checked."""

    id: str
    component: str
    title: str
    """First line of the rule's page."""
    page: str = ""
    """The whole page, as `envcheck explain` prints it."""
    rule: str = ""
    """Name of the rule that gives the id; unknowns carry this name."""


@model
class View:
    """How the run ended, and the reader's screen."""

    version: str
    """Of envcheck."""
    exit_code: int = 0
    fail_on: Literal["warning", "error", "never"] = "error"
    checks: tuple[Check, ...] = ()
    width: int = 100
    """Columns that prose is wrapped to; commands are never wrapped."""
    verbose: bool = False
    """List also what could not be read and which tables were used."""
    name: str = ""
    """Which of several texts the report is about."""
    artifact: str = "envcheck-snapshot.json"
    """File that formats which need one name as the place of the findings."""
