"""A plan for a person to read: the stack, what to type, what was refused, what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.codec import encode
from envcheck.model.finding import SCHEMA_VERSION
from envcheck.report.foreign import clean
from envcheck.report.json_report import dump
from envcheck.report.plain import COMMAND_INDENT, labelled, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.model.plan import Plan, PlannedFramework, Stack, Target

_COLUMN = 12
_PLACE = "~/gpu-env"


def render(plan: Plan, width: int) -> str:
    """Render a plan as plain text.

    Args:
        plan: the plan.
        width: columns that prose is wrapped to; commands are never wrapped.
    """
    parts = [_head(plan, width), *_sections(plan, width)]
    return clean("\n\n".join("\n".join(part) for part in parts if part), lines=True) + "\n"


def document(plan: Plan, exit_code: int) -> str:
    """A plan as JSON: every field of the model, and how the run ended."""
    data: dict[str, Any] = encode(plan)
    return dump({"schema_version": SCHEMA_VERSION, "exit_code": exit_code, **data})


def _head(plan: Plan, width: int) -> list[str]:
    rows = [("for", target_words(plan.request.target)), ("wanted", _wanted(plan))]
    if plan.stack is None:
        lines = ["NO PLAN meets the request"]
    else:
        lines = [f"PLAN {stack_words(plan.stack)}"]
        rows += _rows(plan.stack)
    return lines + [
        line for name, text in rows for line in labelled(f"  {name}", text, _COLUMN, width)
    ]


def _wanted(plan: Plan) -> str:
    want = ", ".join(plan.request.want) or "torch (nothing else was asked for)"
    return f"{want}; preference: {plan.request.prefer}"


def target_words(target: Target) -> str:
    """A target in words."""
    counts = {name: target.gpus.count(name) for name in dict.fromkeys(target.gpus)}
    gpus = [f"{count}x {name}" if count > 1 else name for name, count in counts.items()]
    gpus = gpus or [f"compute capability {each}" for each in target.arches]
    if not gpus and target.driver is None:
        gpus = ["no GPU"]
    driver = [f"driver {target.driver}"] if target.driver else []
    python = [f"Python {target.python}"] if target.python else []
    system = [target.os] if target.os else []
    return ", ".join([*gpus, *driver, *python, *system, target.platform])


def stack_words(stack: Stack) -> str:
    """A stack in one line."""
    names = [f"{each.name} {each.version}" + _for(each) for each in stack.frameworks]
    return ", ".join([*names, f"Python {stack.python}"])


def _for(framework: PlannedFramework) -> str:
    return f" for CUDA {framework.cuda}" if framework.cuda else " for the CPU"


def _rows(stack: Stack) -> list[tuple[str, str]]:
    rows = []
    for each in stack.frameworks:
        known = (
            ("CUDA", each.cuda),
            ("cuDNN", each.cudnn),
            ("NCCL", each.nccl),
            ("triton", each.triton),
        )
        parts = ", ".join(f"{name} {value}" for name, value in known if value)
        rows.append((each.name, f"{each.version}{f' with {parts}' if parts else ''}"))
    names = {each.name for each in stack.frameworks}
    others = [f"{pin.name} {pin.version}" for pin in stack.pins if pin.name not in names]
    if others:
        rows.append(("beside", ", ".join(others)))
    if stack.min_driver:
        text = f"{stack.min_driver} or newer"
        if stack.driver_branch:
            flavour = f" with the {stack.driver_module} modules" if stack.driver_module else ""
            text += f"; to install afresh: branch {stack.driver_branch}{flavour}"
        rows.append(("driver", text))
    return rows


def _sections(plan: Plan, width: int) -> Iterator[list[str]]:
    indent = " " * COMMAND_INDENT
    for at, (installer, commands) in enumerate(plan.install):
        lead = "Install with" if at == 0 else "Or with"
        yield [f"{lead} {installer}", *(indent + command for command in commands)]
    if plan.install:
        yield ["Then see that it fits", f"{indent}envcheck doctor --python {_PLACE}"]
    if plan.notes:
        yield ["Notes", *(line for each in plan.notes for line in _item(each, width))]
    if plan.rejections:
        lines = ["Refused" if plan.stack is None else "Better, but refused"]
        for each in plan.rejections:
            ids = f": {', '.join(each.findings)}" if each.findings else ""
            lines += _item(f"{each.stack}{ids}", width)
            lines += wrap(each.reason, width, first=4, hanging=4)
        yield lines
    if plan.unlocks:
        lines = ["What would help" if plan.stack is None else "What a change would unlock"]
        for unlock in plan.unlocks:
            lines += _item(f"{unlock.change}: {unlock.gives}", width)
        yield lines


def _item(text: str, width: int) -> list[str]:
    return wrap(text, width, first=2, hanging=4)
