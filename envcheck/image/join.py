"""One snapshot of two: the environment of an image, and the machine that is to run it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.model.host import Container, Engine

if TYPE_CHECKING:
    from envcheck.image.engine import EngineFacts, Image
    from envcheck.image.read import Inside
    from envcheck.model.snapshot import Snapshot

PREFIX = "image:"
"""Start of the source of snapshots of images."""


def joined(host: Snapshot, inside: Inside, image: Image, engine: EngineFacts) -> Snapshot:
    """An image on a machine, as if started there with its GPUs.

    The system stays the machine's, since drivers and engines are installed there; of the image it
    has the C library, by which programs in it are judged.
    """
    system = host.host.os
    name = inside.os.name
    both = f"{name} in the image, on {system.name}" if name and system.name else name
    variables = dict(image.variables)
    gaps = tuple(each for each in host.gaps if not each.path.startswith("env"))
    return dataclasses.replace(
        host,
        source=f"{PREFIX}{image.reference}",
        host=dataclasses.replace(
            host.host,
            os=dataclasses.replace(system, name=both or system.name, glibc=inside.os.glibc or None),
            container=Container(
                visible_devices=variables.get("NVIDIA_VISIBLE_DEVICES"),
                driver_capabilities=variables.get("NVIDIA_DRIVER_CAPABILITIES"),
                require_cuda=variables.get("NVIDIA_REQUIRE_CUDA"),
            ),
            engines=with_engine(host.host.engines, engine),
        ),
        env=inside.env,
        gaps=(*gaps, *inside.gaps),
    )


def from_inside(inside: Snapshot, host: Snapshot, image: Image, engine: EngineFacts) -> Snapshot:
    """What a container saw, with what only its host knows of engines."""
    return dataclasses.replace(
        inside,
        source=f"{PREFIX}{image.reference}",
        host=dataclasses.replace(
            inside.host,
            engines=with_engine(host.host.engines, engine),
            cdi=host.host.cdi,
            toolkit_version=host.host.toolkit_version,
        ),
    )


def with_engine(engines: tuple[Engine, ...] | None, facts: EngineFacts) -> tuple[Engine, ...]:
    """The machine's engines, the one in use as it describes itself."""
    known = next((each for each in engines or () if each.name == facts.name), None)
    told = Engine(
        name=facts.name,
        version=facts.version,
        runtimes=facts.runtimes
        if facts.runtimes is not None
        else known.runtimes
        if known is not None
        else (),
        default_runtime=facts.default_runtime,
        hook_path=known.hook_path if known is not None else None,
        desktop=facts.desktop,
        rootless=facts.rootless,
        cgroup_driver=facts.cgroup_driver,
    )
    return (told, *(each for each in engines or () if each.name != facts.name))
