"""The page in a real browser, on a phone's screen and a desk's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from envcheck.fleet.render import render
from tests.fleet.pictures import full

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

_MEASURE = """\
<script>
addEventListener("load", function () {
  var field = document.getElementById("text");
  field.value = "warm";
  field.dispatchEvent(new Event("input"));
  var rows = Array.from(document.querySelectorAll("#hosts tbody tr"));
  var wide = Array.from(document.querySelectorAll("body *")).filter(function (each) {
    return each.getBoundingClientRect().right > innerWidth + 1 &&
      !each.closest(".scroll, pre, .skip, thead");
  });
  document.title = JSON.stringify({
    width: innerWidth,
    page: document.documentElement.scrollWidth,
    wide: wide.map(function (each) { return each.tagName + " " + each.textContent.slice(0, 40); }),
    alert: String(window.stolen),
    filter: document.getElementById("filter").hidden,
    shown: rows.filter(function (each) { return !each.hidden; }).map(function (each) {
      return each.firstElementChild.textContent;
    }),
    told: document.getElementById("told").textContent
  });
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_the_page_fits_its_screen_and_can_be_searched(
    tmp_path: Path, width: int, height: int
) -> None:
    import json

    html = render("html", full("<script>window.stolen = 1</script><img src=x onerror=stolen=1>"))
    # The page lets no script run but its own: the one that measures is let in beside it.
    measured = re.sub(r"script-src '([^']+)'", "script-src 'unsafe-inline'", html)
    page = tmp_path / "fleet.html"
    page.write_text(measured.replace("</body>", f"{_MEASURE}</body>"), encoding="utf-8")
    # A window is never narrower than some 500 pixels; a frame in it is.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<body style="margin:0"><iframe src="fleet.html" width={width} height={height}'
        ' style="border:0" onload="setTimeout(function () {'
        " document.body.dataset.said = document.querySelector('iframe').contentDocument.title"
        '}, 300)"></iframe>'
    )
    dom = chromium(tmp_path, "--dump-dom", "--allow-file-access-from-files", frame.as_uri())
    match = re.search(r'data-said="([^"]*)"', dom)
    assert match is not None, dom[:2000]
    said = json.loads(match.group(1).replace("&quot;", '"').replace("&amp;", "&"))
    assert said["width"] == width
    assert said["page"] <= width
    assert said["wide"] == []
    assert said["alert"] == "undefined"
    assert said["filter"] is False
    assert said["shown"] == ["warm"]
    assert said["told"] == "1 of 13 shown"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_page_says_nothing_to_the_console(tmp_path: Path) -> None:
    """Neither the policy nor the network stops anything that the page wants."""
    page = tmp_path / "fleet.html"
    page.write_text(render("html", full()), encoding="utf-8")
    picture = tmp_path / "page.png"
    said = chromium(
        *(tmp_path, "--enable-logging=stderr", "--v=0", f"--screenshot={picture}"),
        *("--window-size=800,600", page.as_uri()),
    )
    assert "CONSOLE" not in said
    assert picture.stat().st_size > 10_000


def chromium(folder: Path, *args: str) -> str:
    """Run a browser without a screen; both of its outputs."""
    done = subprocess.run(
        [
            str(CHROMIUM),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=3000"),
            *args,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr
