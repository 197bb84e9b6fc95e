"""The picture as one page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.fleet import words
from envcheck.fleet.stack import part
from envcheck.report.describe import titled
from envcheck.report.foreign import clean

if TYPE_CHECKING:
    from envcheck.fleet.model import Fleet

_FOLDER = Path(__file__).parent / "page"
_SIGNS = {"error": "✖", "warning": "▲", "unknown": "?", "ok": "✔", "info": "i"}
"""Beside every word for how grave something is, so that colour is never needed."""


def render(fleet: Fleet) -> str:
    """Render a picture as HTML.

    All text is escaped by the template engine; the page's own policy lets a browser run the page's
    own script and nothing else, should anything get through.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    page = environment.get_template("page.html.j2")
    text: str = page.render(
        fleet=fleet,
        words=words,
        part=part,
        titled=titled,
        signs=_SIGNS,
        style_digest=_digest(environment.get_template("page.css").render()),
        script_digest=_digest(environment.get_template("page.js").render()),
        columns=tuple(dict.fromkeys(each.torch for each in fleet.matrix)),
        drivers=tuple(dict.fromkeys(each.driver for each in fleet.matrix)),
        cells={(each.driver, each.torch): each.hosts for each in fleet.matrix},
    )
    return text + "\n"


def _harmless(value: Any) -> Any:
    """Foreign text without characters that reorder or hide what stands beside them."""
    return clean(value, lines=True) if type(value) is str else value


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
