"""Every example of the README is run, as a reader would type it, and shows what comes of it.

An example that nobody claims below fails. Days in captures are any day, because tables are read
again; so are times and rates of the smoke test, whose stages are those of a committed recording.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from tests.meta.readme import place
from tests.meta.readme.examples import README, Block, Step, commands, same, split, steps

ROOT = README.parent
BLOCKS, PROSE = split(README.read_text(encoding="utf-8"))
COMMANDS = commands(PROSE)
STEPS = [(block, step) for block in BLOCKS for step in steps(block.text)]
LOCK = 'envcheck plan --target "RTX 5090, driver 570, python 3.12, ubuntu 24.04" -o envcheck.lock'
BUILD = "containers/test_emitted.py::test_a_torch_image_fits_its_lock_and_the_machine"
SYSTEMS = "ansible/test_story.py::test_the_first_run_brings_every_host_there"
CI = "meta/test_readme.py::test_the_two_command_lines_are_those_that_ci_runs"


class Claim(NamedTuple):
    """How an example is run.

    Attributes:
        status: exit status as documented; several where this machine decides.
        typed: what is typed in place of it, where it has placeholders or would need a fleet.
        test: existing test that runs it to its end; then it is run here as far as it goes without
            a GPU, an engine, a host or an index, and must be understood.
    """

    status: tuple[int, ...] = (0,)
    typed: str = ""
    test: str = ""


JUDGED = Claim((0, 1))
NOT_HERE = (0, 1, 3)
CLAIMS: dict[str, Claim] = {
    # Of this machine, whatever it has.
    "envcheck doctor": JUDGED,
    "envcheck doctor --require-gpu": Claim((0, 1, 3)),
    "envcheck doctor --format junit -o envcheck.xml": JUDGED,
    "envcheck doctor --format markdown": JUDGED,
    "envcheck doctor --json": JUDGED,
    "envcheck doctor --against envcheck.lock": JUDGED,
    "envcheck snapshot --record my-node": Claim(),
    "envcheck doctor --machine my-node": JUDGED,
    "envcheck doctor --python ~/miniforge3/envs/train": Claim(
        (0, 1), "envcheck doctor --python python"
    ),
    "envcheck --version": Claim(),
    "envcheck COMMAND --help": Claim(typed="envcheck doctor --help"),
    "envcheck explain driver-too-old": Claim(),
    "envcheck explain ID": Claim(typed="envcheck explain --list"),
    'eval "$(envcheck completion bash)"': Claim(),
    # Of texts, recordings and tables.
    "envcheck doctor --report issue.txt": Claim((1,)),
    "envcheck doctor --report issue.txt --format markdown": Claim((1,)),
    "envcheck doctor --report reports/ --format jsonl": Claim((0, 1, 3)),
    "envcheck fleet report reports": Claim((1,)),
    "envcheck watch --replay tests/watch/series/tiny_kernels-1.jsonl": Claim(),
    "envcheck tables list": Claim(),
    "envcheck tables show NAME": Claim(typed="envcheck tables show cuda"),
    "envcheck tables check": Claim(),
    "envcheck tables refresh NAME": Claim(
        (2,), "envcheck tables refresh no-such", "refresh/test_settings.py"
    ),
    # Plans, and files from them.
    "envcheck plan": Claim((0, 5)),
    'envcheck plan --target "RTX 5090, driver 570"': Claim(),
    "envcheck plan -o": Claim(typed='envcheck plan --target "no gpu, python 3.12" -o cpu.lock'),
    'envcheck plan --target "RTX 5090, driver 570, python 3.12" --want "torch>=2.6"'
    " --want torchvision": Claim(),
    LOCK: Claim(),
    "envcheck emit dockerfile -o image": Claim(),
    **{
        f"envcheck emit {kind}": Claim(typed=f"envcheck emit {kind} -o {kind}")
        for kind in ("dockerfile", "compose", "devcontainer", "requirements", "conda", "slurm")
    },
    "envcheck emit ansible": Claim(typed="envcheck emit ansible -o fleet-skeleton"),
    "envcheck emit kubernetes": Claim(
        typed="envcheck emit kubernetes --image registry.example/train:7 -o kubernetes"
    ),
    "envcheck emit ansible --inventory 'gpu[01:16]' --driver-version 580.95.05 -o fleet": Claim(),
    "cd fleet && ansible-playbook site.yml --check --diff": Claim(
        test="ansible/test_story.py::test_check_mode_says_what_would_be_installed_and_changes_nothing"
    ),
    "ansible-playbook site.yml": Claim(typed="cd fleet && ansible-playbook site.yml", test=SYSTEMS),
    # Images: the engine here holds one and runs none.
    "DOCKER_BUILDKIT=1 docker build --tag train image": Claim(
        typed="test -f image/Dockerfile", test=BUILD
    ),
    "docker run --rm --gpus all --shm-size 8g train": Claim(
        typed="grep -q 'docker run .*--gpus all .*--shm-size 8g' image/Dockerfile",
        test="containers/test_gpu_requests.py::test_the_runtime_gives_the_gpu",
    ),
    "docker run --rm --gpus all train envcheck doctor --against /opt/envcheck.lock": Claim(
        typed="grep -q /opt/envcheck.lock image/Dockerfile", test=BUILD
    ),
    "envcheck image build image/ -t train:7": Claim(
        (1, 3),
        test="containers/test_build.py::test_a_build_is_named_after_its_folder_and_its_log_is_kept",
    ),
    "envcheck image build DIR": Claim((1, 3), "envcheck image build image", BUILD),
    "envcheck image check train:7 --against envcheck.lock": Claim((0, 1, 3), test=BUILD),
    "envcheck image check REF": Claim(
        (0, 1, 3), "envcheck image check train:7 --against envcheck.lock", BUILD
    ),
    "envcheck doctor --image colleague/train": Claim((1,)),
    # What needs a GPU, a framework or hosts.
    "envcheck smoke": Claim(NOT_HERE, test="gpu/test_smoke.py::test_every_stage_is_ok"),
    "python smoke_torch.py": Claim(
        (0, 1),
        f"python {ROOT}/envcheck/payloads/smoke_torch.py",
        "smoke/test_cpu.py::test_both_frameworks",
    ),
    "srun -N2 --ntasks-per-node=1 envcheck smoke --nnodes 2 --rdzv-backend c10d"
    " --rdzv-endpoint node1:29500": Claim(
        NOT_HERE, test="smoke/test_runner.py::test_torchrun_gets_what_was_passed"
    ),
    "envcheck watch -- python train.py": Claim(
        test="watch/test_watch.py::test_a_command_keeps_its_output_its_input_and_its_status"
    ),
    "envcheck watch --pid 4711 --seconds 60": Claim(
        NOT_HERE,
        "sleep 20 & envcheck watch --pid $! --seconds 1; status=$?; kill $!; exit $status",
        "watch/test_watch.py::test_a_process_and_the_end_of_it",
    ),
    "envcheck fleet run -i inventory.ini -o reports": Claim(
        (2, 3),
        "envcheck fleet run -i no-such.ini -o other-reports",
        "fleet/test_run.py::test_every_host_gets_its_own_finding",
    ),
    # What sets this project up and tests it.
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/envcheck doctor": Claim(
        typed="true", test="meta/test_isolated_install.py::test_a_tool_of_pip"
    ),
    "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest": Claim(
        typed="true", test=CI
    ),
    "pipx install .": Claim(
        typed="true", test="meta/test_isolated_install.py::test_a_tool_of_pipx"
    ),
    "uvx --from . envcheck doctor": Claim(
        typed="true", test="meta/test_isolated_install.py::test_a_tool_of_uv"
    ),
    ".ci/run": Claim(typed=f"bash -n {ROOT}/.ci/run", test=CI),
    "python -m torch.utils.collect_env": Claim(typed="true", test="intake/test_readers.py"),
    ".venv/bin/pytest -m gpu": Claim(typed="true", test="gpu/test_live.py"),
}
IMAGE_WORDS = {
    "report/describe.py": "all as in the lock, as far as it was read",
    "commands/image.py": "; log: ",
}
FIRST = (
    LOCK,
    "envcheck emit dockerfile -o image",
    "envcheck emit ansible --inventory 'gpu[01:16]' --driver-version 580.95.05 -o fleet",
    "envcheck snapshot --record my-node",
)
"""What others read the files of, whichever test is run alone."""
JSON_START = '{"schema_version"'


def _kind(block: Block) -> str:
    if block.text.startswith("from "):
        return "python"
    return "json" if block.text.startswith(JSON_START) else "commands"


SESSION = [(b, s) for b, s in STEPS if _kind(b) == "commands"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything is typed, with the lock that several examples read."""
    made = tmp_path_factory.mktemp("readme")
    place.furnish(made)
    for command in FIRST:
        assert _typed(made, command).returncode == 0, command
    return made


_DONE: dict[str, CompletedProcess[str]] = {}


def _typed(folder: Path, command: str) -> CompletedProcess[str]:
    """What came of a command, which is typed once."""
    if command not in _DONE:
        _DONE[command] = place.run(folder, command)
    return _DONE[command]


def test_every_example_is_claimed_and_no_claim_is_left_over() -> None:
    examples = {*COMMANDS, *(step.command for _, step in SESSION)}
    assert examples - set(CLAIMS) == set()
    assert set(CLAIMS) - examples == set()
    assert [_kind(block) for block in BLOCKS].count("python") == 1
    assert [_kind(block) for block in BLOCKS].count("json") == 1


def test_tests_that_claims_name_are_there() -> None:
    for claim in CLAIMS.values():
        path, _, name = claim.test.partition("::")
        if path:
            text = (ROOT / "tests" / path).read_text(encoding="utf-8")
            names = {n.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
            assert not name or name in names, claim.test


@pytest.mark.parametrize("command", list(CLAIMS))
def test_a_command_ends_as_documented(folder: Path, command: str) -> None:
    claim = CLAIMS[command]
    typed = claim.typed or command
    done = _typed(folder, typed)
    assert done.returncode in claim.status, f"{typed}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr or "smoke_torch" in typed, done.stderr


@pytest.mark.parametrize(
    ("block", "step"), [pytest.param(b, s, id=f"line {b.line}") for b, s in SESSION if s.shown]
)
def test_what_is_shown_is_what_is_printed(folder: Path, block: Block, step: Step) -> None:
    if step.command.startswith("envcheck image "):
        # What an engine at work makes it say: the words are held against the code that says them.
        for file, words in IMAGE_WORDS.items():
            assert words in (ROOT / "envcheck" / file).read_text(encoding="utf-8")
            assert words in block.text
        return
    if step.command == "envcheck smoke":
        recorded = place.stages((ROOT / "benchmarks/h200/smoke.json").read_text("utf-8"))
        rows = [line.split() for line in step.shown if line.startswith("torch ")]
        assert [tuple(row[:3]) for row in rows] == [e for e in recorded if e[0] == "torch"]
        assert {row[3] for row in rows} == {"ok"}
        return
    typed = step.command
    machine = re.search(r"`tests/machines/([\w-]+)`", block.before)
    if typed == "envcheck doctor":
        assert machine, f"line {block.line}: of which recorded machine is this?"
        typed += f" --machine {ROOT}/tests/machines/{machine[1]}"
    done = _typed(folder, typed)
    assert same(step.shown, done.stdout or done.stderr) == ""


def test_the_training_loop_times_its_steps(folder: Path) -> None:
    (snippet,) = (block.text for block in BLOCKS if _kind(block) == "python")
    script = folder / "loop.py"
    script.write_text(place.TRAINING + snippet + "\nprint('done')\n", encoding="utf-8")
    done = place.run(folder, "envcheck watch -- python loop.py")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_shape_of_json_is_that_of_a_report(folder: Path) -> None:
    (shape,) = (block.text for block in BLOCKS if _kind(block) == "json")
    machine = f"{ROOT}/tests/machines/v100-torch211-cu130"
    report = json.loads(place.run(folder, f"envcheck doctor --json --machine {machine}").stdout)
    (finding, *_) = report["findings"]
    top = re.findall(r'^ ?\{?"(\w+)":|, "(\w+)":', shape, re.MULTILINE)
    assert {a or b for a, b in top} <= {*report, *finding}
    fields = re.search(r'"findings": \[\{(.*?)\}\],\n "ask"', shape, re.DOTALL)
    assert fields
    bare = re.sub(r": \[.*?\](?=[,}]|$)", "", fields[1], flags=re.DOTALL)
    assert set(re.findall(r'"(\w+)"', bare)) == set(finding)
