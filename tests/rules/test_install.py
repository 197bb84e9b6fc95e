"""Commands for the tool that manages an environment."""

from __future__ import annotations

import pytest

from envcheck.rules import install
from tests.support import evolve, machine

INDEX = "https://example.org/whl/cu126"


@pytest.mark.parametrize(
    ("manager", "commands"),
    [
        ("pip", (f'~/venv/bin/python -m pip install "torch==2.8.0" --index-url {INDEX}',)),
        (
            "uv",
            (f'uv pip install --python ~/venv/bin/python "torch==2.8.0" --index-url {INDEX}',),
        ),
        (
            "poetry",
            (
                f"poetry source add --priority=explicit cu126 {INDEX}",
                'poetry add --source cu126 "torch==2.8.0"',
            ),
        ),
        ("pdm", (f"pdm config --local pypi.cu126.url {INDEX}", 'pdm add "torch==2.8.0"')),
        ("conda", (f'~/venv/bin/python -m pip install "torch==2.8.0" --index-url {INDEX}',)),
        (None, (f'~/venv/bin/python -m pip install "torch==2.8.0" --index-url {INDEX}',)),
    ],
)
def test_install(manager: str | None, commands: tuple[str, ...]) -> None:
    """The same wish in each tool's words, for the target interpreter."""
    snapshot = evolve(machine(), {"env.python.manager": manager})
    assert install.install(snapshot, ("torch==2.8.0",), index_url=INDEX) == commands


def test_a_python_that_the_system_manages() -> None:
    """New packages go into a new environment; a wheel that is in place is repaired in place."""
    system = evolve(
        machine(),
        {
            "env.python.externally_managed": True,
            "env.python.kind": "system",
            "env.python.executable": "/usr/bin/python3",
        },
    )
    assert install.install(system, ("x==1",)) == (
        "/usr/bin/python3 -m venv ~/gpu-env",
        '~/gpu-env/bin/python -m pip install "x==1"',
    )
    fix = install.reinstall_pinned(system, "t", ("x", "y"), ("x==1",))
    assert fix.commands == (
        "/usr/bin/python3 -m pip uninstall -y --break-system-packages x y",
        "/usr/bin/python3 -m pip install --force-reinstall --no-deps --break-system-packages "
        '"x==1"',
    )


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("~/venv/bin/python", "~/venv/bin/python"),
        ("~/my envs/v/bin/python", '~/"my envs/v/bin/python"'),
        ("/opt/a b/python", '"/opt/a b/python"'),
        ("C:\\venv\\python.exe", "C:\\venv\\python.exe"),
    ],
)
def test_paths_as_shell_words(path: str, shown: str) -> None:
    """A leading tilde must stay outside the quotes, else the shell does not expand it."""
    assert install.word(path) == shown
