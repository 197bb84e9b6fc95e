"""The picture in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.codec import encode
from envcheck.report.json_report import dump

if TYPE_CHECKING:
    from envcheck.fleet.model import Fleet

FORMATS = ("text", "json", "markdown", "junit", "html", "prometheus")


def render(form: str, fleet: Fleet, *, width: int = 100, verbose: bool = False) -> str:
    """Render a picture.

    Args:
        form: one of `FORMATS`.
        fleet: the picture.
        width: columns of text.
        verbose: text names every host of every list; other formats do so where they have room.
    """
    if form == "json":
        return dump(document(fleet))
    if form == "text":
        from envcheck.fleet import text

        return text.render(fleet, width=width, verbose=verbose)
    if form == "markdown":
        from envcheck.fleet import markdown

        return markdown.render(fleet)
    if form == "junit":
        from envcheck.fleet import junit

        return junit.render(fleet)
    if form == "prometheus":
        from envcheck.fleet import prometheus

        return prometheus.render(fleet)
    from envcheck.fleet import html

    return html.render(fleet)


def document(fleet: Fleet) -> dict[str, Any]:
    """The picture as plain data: a host names its group by number instead of repeating a stack."""
    data: dict[str, Any] = encode(fleet)
    index = {host: at for at, group in enumerate(fleet.groups) for host in group.hosts}
    for node, plain in zip(fleet.nodes, data["nodes"], strict=True):
        del plain["stack"]
        plain["group"] = index[node.name]
    return data
