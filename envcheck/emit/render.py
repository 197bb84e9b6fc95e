"""Templates of `containers/templates`, filled in strictly: a value that is absent is an error."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from envcheck.paths import data_dir

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """The text of a template, ending in one newline."""
    text: str = _environment().get_template(f"{template}.j2").render(**values)
    return text.rstrip("\n") + "\n"


@functools.cache
def _environment() -> Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_dir("containers") / "templates"),
        undefined=jinja2.StrictUndefined,
        # Dockerfiles and YAML are no HTML, and every value was checked against its pattern.
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
