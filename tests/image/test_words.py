"""What engines say when they cannot, in their own words as they were seen."""

from __future__ import annotations

import pytest

from envcheck.image.build import failure
from envcheck.image.trouble import kind_of, trouble

WORDS = {
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
    "running?": "not-running",
    "Error while fetching server API version: ('Connection aborted.', FileNotFoundError(2, 'No such"
    " file or directory'))": "not-running",
    "Got permission denied while trying to connect to the Docker daemon socket at "
    'unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/info": dial unix '
    "/var/run/docker.sock: connect: permission denied": "no-permission",
    "Error while fetching server API version: ('Connection aborted.', PermissionError(13, "
    "'Permission denied'))": "no-permission",
    "error during connect: Get http://gpu-box:2375/v1.41/info: dial tcp: lookup gpu-box: no such "
    "host": "not-running",
    "pull access denied for stub/absent, repository does not exist or may require 'docker login': "
    "denied: requested access to the resource is denied": "pull-refused",
    'Get "https://registry.example/v2/": dial tcp: lookup registry.example on 10.0.0.2:53: no such '
    "host": "pull-refused",
    'initializing source docker://localhost:9/x:1: pinging container registry localhost:9: Get "htt'
    'ps://localhost:9/v2/": dial tcp [::1]:9: connect: connection refused': "pull-refused",
    "toomanyrequests: You have reached your pull rate limit.": "pull-refused",
    "failed to register layer: Error processing tar file(exit status 1): write /big: no space left "
    "on device": "disk-full",
    "ERROR: BuildKit is enabled but the buildx component is missing or broken.": "no-buildkit",
    "Error: No such image: absent:latest": "no-image",
    "Error: absent: image not known": "no-image",
    'could not select device driver "" with capabilities: [[gpu]]': "refused",
    "Unknown runtime specified nvidia": "refused",
    "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all": "refused",
}


@pytest.mark.parametrize(("words", "kind"), WORDS.items())
def test_words_are_told_apart(words: str, kind: str) -> None:
    assert kind_of(words) == kind


def test_the_message_has_the_words_the_status_and_what_to_do() -> None:
    words = "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?"
    assert str(trouble("docker", f"{words}\n", 1)).splitlines() == [
        "docker is not running",
        words,
        "(docker ended with exit status 1)",
        "start it: sudo systemctl start docker",
    ]


OLD = """\
#5 [2/3] RUN echo hi
#5 DONE 0.4s

#6 [3/3] RUN echo some; exit 4
#6 0.448 some
#6 ERROR: executor failed running [/bin/sh -c echo some; exit 4]: exit code: 4
------
 > [3/3] RUN echo some; exit 4:
------
executor failed running [/bin/sh -c echo some; exit 4]: exit code: 4
"""
NEW = """\
#7 [build 3/5] RUN pip install torch==9
#7 1.201 ERROR: Could not find a version that satisfies the requirement torch==9
#7 1.202 ERROR: No matching distribution found for torch==9
#7 ERROR: process "/bin/sh -c pip install torch==9" did not complete successfully: exit code: 1
------
 > [build 3/5] RUN pip install torch==9:
------
Dockerfile:12
--------------------
  10 |     FROM base AS build
  12 | >>> RUN pip install torch==9
--------------------
ERROR: failed to solve: process "/bin/sh -c pip install torch==9" did not complete successfully: \
exit code: 1
"""
PODMAN = """\
STEP 1/2: FROM localhost/base:latest
STEP 2/2: RUN echo the cause >&2; exit 9
the cause
Error: building at STEP "RUN echo the cause >&2; exit 9": while running runtime: exit status 9
"""
ABSENT = """\
#3 [internal] load metadata for docker.io/nvidia/cuda:99
#3 ERROR: docker.io/nvidia/cuda:99: not found
------
Dockerfile:1
--------------------
   1 | >>> FROM nvidia/cuda:99
--------------------
ERROR: failed to solve: nvidia/cuda:99: failed to resolve source metadata for \
docker.io/nvidia/cuda:99: docker.io/nvidia/cuda:99: not found
"""
PARSE = """\
failed to solve with frontend dockerfile.v0: failed to create LLB definition: dockerfile parse \
error line 2: unknown instruction: RUUN
"""


def test_a_step_of_an_old_docker() -> None:
    found = failure(OLD.splitlines(), 1)
    assert (found.kind, found.title) == ("step", "a step failed: echo some; exit 4")
    assert found.words == (
        "some",
        "executor failed running [/bin/sh -c echo some; exit 4]: exit code: 4",
    )


def test_a_step_of_a_newer_docker_has_its_line() -> None:
    found = failure(NEW.splitlines(), 1)
    assert found.title == "a step failed (Dockerfile, line 12): pip install torch==9"
    assert found.words[1] == "ERROR: No matching distribution found for torch==9"
    assert (found.kind, len(found.words), found.code) == ("step", 3, 1)


def test_a_step_of_podman() -> None:
    found = failure(PODMAN.splitlines(), 9)
    assert (found.kind, found.title) == ("step", "a step failed: echo the cause >&2; exit 9")
    assert "the cause" in found.words


def test_an_image_that_is_not_there() -> None:
    found = failure(ABSENT.splitlines(), 1)
    assert (found.kind, found.title) == (
        "pull-refused",
        "nvidia/cuda:99 could not be had (Dockerfile, line 1)",
    )


def test_a_dockerfile_that_cannot_be_read() -> None:
    found = failure(PARSE.splitlines(), 1)
    assert found.kind == "refused"
    assert found.words[-1].endswith("dockerfile parse error line 2: unknown instruction: RUUN")


def test_a_step_that_talks_of_a_network_is_still_a_step() -> None:
    text = NEW.replace("No matching distribution found", "dial tcp: no such host")
    assert failure(text.splitlines(), 1).kind == "step"
