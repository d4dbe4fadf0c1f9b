"""A program in few lines of text, much as XLA prints it, -> HloProgram.

    body {
      p = f32[8] parameter(0)
      ROOT m = f32[8] multiply(p, p) scope=jit(f)/mlp/mul
    }
    ENTRY {
      x = f32[8] parameter(0)
      ROOT f = f32[8] fusion(x) calls=body
    }

A number in parentheses is a parameter's number or a tuple's index. Behind the operands stand
`calls=a,b`, `layout={0,1}`, `scope=`, `source=`, `attributes=`, `literal=`, `target=`, `trips=` and
`groups=0-1,2-3`.
"""

from __future__ import annotations

import re
from typing import Any

from marin_profile.events.hlo_program import HloBlock, HloNode, HloProgram

_LINE = re.compile(
    r"(?P<root>ROOT )?(?P<name>\S+) = (?P<shape>\(.*?\)|\S+) (?P<opcode>[\w\-]+)"
    r"\((?P<operands>[^)]*)\)(?P<rest>.*)"
)
_FACT = re.compile(r"(\w+)=(\S+)")


def program(
    text: str,
    *,
    name: str = "jit_f",
    program_id: int = 1,
    donated: tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...] = (),
) -> HloProgram:
    ids: dict[str, int] = {}
    blocks: dict[int, HloBlock] = {}
    nodes: dict[str, HloNode] = {}
    opened, root, own = "", "", []
    for raw in text.splitlines():
        line = raw.strip()
        if line.endswith("{"):
            opened, root, own = line[:-1].strip(), "", []
            ids[opened] = len(ids) + 1
        elif line == "}":
            blocks[ids[opened]] = HloBlock(tuple(own), root)
        elif line:
            found = _LINE.fullmatch(line)
            assert found is not None, line
            node = _node(found, ids)
            nodes[node.name] = node
            own.append(node.name)
            root = node.name if found["root"] else root
    return HloProgram(name, program_id, nodes, blocks, ids["ENTRY"], donated)


def _node(found: re.Match[str], ids: dict[str, int]) -> HloNode:
    facts: dict[str, Any] = dict(_FACT.findall(found["rest"]))
    operands = [one.strip() for one in found["operands"].split(",") if one.strip()]
    numbers = [int(one) for one in operands if one.isdecimal()]
    groups = facts.get("groups", "")
    return HloNode(
        name=found["name"],
        opcode=found["opcode"],
        shape=found["shape"],
        layout=facts.get("layout", ""),
        attributes=facts.get("attributes", ""),
        literal=facts.get("literal", ""),
        number=numbers[0] if numbers else 0,
        operands=tuple(one for one in operands if not one.isdecimal()),
        called=tuple(ids[one] for one in facts.get("calls", "").split(",") if one),
        groups=tuple(tuple(map(int, one.split("-"))) for one in groups.split(",") if one),
        target=facts.get("target", ""),
        trips=int(facts["trips"]) if "trips" in facts else None,
        op_name=facts.get("scope", ""),
        source=facts.get("source", ""),
    )
