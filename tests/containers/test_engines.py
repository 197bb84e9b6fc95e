"""One docker, by its SDK and by its command: the same answers."""

from __future__ import annotations

import pytest

from envcheck.image.command import CommandEngine
from envcheck.image.engine import Engine as Asked
from envcheck.image.engine import open_engine
from envcheck.image.read import read_image
from envcheck.image.sdk import SdkEngine
from envcheck.image.trouble import EngineError
from tests.containers.engine import BASE, Engine


@pytest.fixture
def both(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> tuple[Asked, Asked]:
    engine.base_image(BASE)
    for name, value in engine.variables.items():
        monkeypatch.setenv(name, value)
    return SdkEngine(), CommandEngine("docker", engine.program)


def test_facts_and_images_are_the_same(both: tuple[Asked, Asked]) -> None:
    sdk, command = both
    assert sdk.facts() == command.facts()
    assert sdk.facts().runtimes is not None
    image = sdk.image(BASE)
    assert image is not None
    assert image == command.image(BASE)
    assert image.architecture in {"amd64", "arm64"}
    assert (sdk.image("none/such"), command.image("none/such")) == (None, None)


def test_files_are_the_same(both: tuple[Asked, Asked]) -> None:
    sdk, command = both
    image = sdk.image(BASE)
    assert image is not None
    found = read_image(sdk, image)
    assert found == read_image(command, image)
    assert "pip" in [each.name for each in found.env.packages or ()]
    assert found.env.python.libc == f"glibc {found.os.glibc}"


@pytest.mark.parametrize("which", [0, 1], ids=["sdk", "command"])
def test_a_container_runs_and_is_removed(
    engine: Engine, both: tuple[Asked, Asked], which: int
) -> None:
    asked = both[which]
    image = asked.image(BASE)
    assert image is not None
    argv = ("sh", "-c", "echo out; echo err >&2; exit 7")
    ran = asked.run(image, argv, request="none", files=None, timeout=60.0)
    assert (ran.started, ran.code, ran.stdout, ran.stderr) == (True, 7, "out\n", "err\n")
    slow = asked.run(image, ("sleep", "60"), request="none", files=None, timeout=1.0)
    assert (slow.started, slow.code) == (True, None)
    none = asked.run(image, ("no-such-program",), request="none", files=None, timeout=60.0)
    assert none.started is False
    assert "no-such-program" in none.stderr
    gpus = asked.run(image, ("true",), request="gpus", files=None, timeout=60.0)
    assert gpus.started is False
    assert "could not select device driver" in gpus.stderr
    assert engine.cli("ps", "--all", "--quiet").stdout == ""


def test_a_pull_that_is_refused(both: tuple[Asked, Asked]) -> None:
    for asked in both:
        with pytest.raises(EngineError) as caught:
            asked.pull("localhost:9/none/such:1")
        assert caught.value.kind == "pull-refused"
        assert "localhost:9" in caught.value.words


def test_the_sdk_is_preferred(both: tuple[Asked, Asked]) -> None:
    assert isinstance(open_engine("docker"), SdkEngine)
    assert both[0].name == both[1].name == "docker"
