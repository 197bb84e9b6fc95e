"""Wording of findings about cuDNN, NCCL and the network between ranks that rest on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.told.cuda_words import again
from envcheck.rules.told.wording import Wording, captured, fixed

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard


def _interface(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    variable = captured(symptoms, "variable")
    names = (variable,) if variable else ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
    return (
        Fix(
            title="See which interface has the address by which the other nodes know this one",
            commands=("ip -br address",),
        ),
        Fix(
            title="Name it on every node",
            commands=tuple(f"export {name}=<interface>" for name in names),
        ),
        Fix(
            title="And let the host's name resolve to that address, not to 127.0.0.1",
            commands=("getent hosts $(hostname)",),
        ),
    )


WORDS: dict[str, Wording] = {
    "cudnn-missing": Wording(
        component="cudnn",
        subject="cuDNN",
        title="cuDNN is not found",
        needed="the cuDNN release that the framework was built for",
        why="The program loads cuDNN when it first needs it, and finds no such file.",
        roads=again,
    ),
    "cudnn-version-mismatch": Wording(
        component="cudnn",
        subject="cuDNN",
        title="cuDNN is not the release that the framework was built for",
        needed="the cuDNN that the framework was built for, or a newer one of the same major",
        why="An installed cuDNN is older than the one that the framework was built with, or its "
        "parts are of different releases.",
        roads=again,
        names=("found",),
    ),
    "nccl-version-mismatch": Wording(
        component="nccl",
        subject="NCCL",
        title="The ranks use different releases of NCCL",
        needed="one release of NCCL on every rank",
        why="Ranks exchange data in a form that changes between releases.",
        roads=fixed(
            Fix(
                title="Compare what each rank loads, then install the same environment everywhere",
                commands=('python -c "import torch; print(torch.cuda.nccl.version())"',),
            ),
        ),
    ),
    "nccl-network-unreachable": Wording(
        component="nccl",
        subject="network between ranks",
        title="The ranks cannot reach each other over the network",
        needed="a network over which every rank reaches every other one",
        why="Connections between nodes time out: wrong GID index or adapter for RoCE, a firewall, "
        "or networks without a route.",
        roads=fixed(
            Fix(
                title="See whether it works without InfiniBand and RoCE",
                commands=("export NCCL_IB_DISABLE=1",),
            ),
            Fix(
                title="With RoCE, choose the GID of RoCE v2 and the adapters to use",
                commands=(
                    "show_gids",
                    "export NCCL_IB_GID_INDEX=<index>",
                    "export NCCL_IB_HCA=<adapter>",
                ),
            ),
            Fix(
                title="Check that the nodes reach each other on every port of that network",
                commands=("ping <other node>",),
            ),
        ),
    ),
    "nccl-wrong-interface": Wording(
        component="nccl",
        subject="network between ranks",
        title="The ranks meet on the wrong network interface",
        needed="the interface by which the nodes reach each other",
        why="Loopback and virtual interfaces lead to no other node.",
        roads=_interface,
        names=("interface", "address"),
    ),
    "nccl-cumem-unsupported": Wording(
        component="nccl",
        subject="NCCL host memory",
        title="NCCL's host memory by cuMem does not work here",
        needed="host memory in the classic way, or a newer NCCL and driver",
        why="NCCL allocates buffers in host memory by cuMem where it believes this to work; on "
        "some topologies it does not.",
        roads=fixed(
            Fix(title="Switch it off", commands=("export NCCL_CUMEM_HOST_ENABLE=0",)),
            Fix(title="Or update NCCL, with the framework that brings it, and the driver"),
        ),
    ),
    "ranks-share-gpu": Wording(
        component="nccl",
        subject="ranks",
        title="Two ranks use one GPU",
        needed="one GPU a rank",
        why="More ranks were started than there are GPUs, or each rank takes GPU 0 because it does "
        "not select its own.",
        roads=fixed(
            Fix(
                title="Start as many ranks as there are GPUs",
                commands=("torchrun --nproc-per-node=gpu <script>",),
            ),
            Fix(
                title="In the program, let each rank select its GPU before anything else: "
                'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))'
            ),
        ),
    ),
}
