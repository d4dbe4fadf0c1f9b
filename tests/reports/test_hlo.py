"""What XLA did differently, in words: which differences are named, and how many are not."""

from __future__ import annotations

from marin_profile.comparison.model import HloChanges, HloDifference
from marin_profile.documents import markdown
from marin_profile.documents.model import Document, Paragraph
from marin_profile.reports.hlo import hlo_sentence


def row(kind: str, delta: float, *, noise: bool | None = None) -> HloDifference:
    return HloDifference(
        name=kind,
        kind=kind,
        sentence=f"It was {kind}.",
        program="jit_f",
        scope="jit(f)/mlp/dot_general",
        before=1.0,
        after=1.0 + delta,
        delta=delta,
        noise=noise,
        num_before_ops=1,
        num_after_ops=1,
        places=1,
    )


def sentence(*rows: HloDifference, total: int | None = None) -> str:
    found = HloChanges(
        differences=list(rows), total_differences=len(rows) if total is None else total
    )
    told = markdown.render(Document("Answer", (Paragraph(hlo_sentence(found)),), ()))
    return told.removeprefix("# Answer").strip().replace("\\", "")


def test_one() -> None:
    assert sentence(row("dtype", 2.0)) == "+2.00 us in `mlp`: It was dtype."


def test_the_largest_is_named_wherever_it_stands() -> None:
    told = sentence(
        row("remat_off", -1.0, noise=True),
        row("shape", 2.0, noise=True),
        row("fusion_split", 3.0, noise=True),
        row("op_added", 70.0, noise=True),
        total=9,
    )
    assert told == (
        "-1.00 us (not told from noise) in `mlp`: It was remat_off. "
        "+2.00 us (not told from noise) in `mlp`: It was shape. "
        "+70.00 us (not told from noise) in `mlp`: It was op_added. And 6 other differences."
    )


def test_those_named_are_all_there_are() -> None:
    assert sentence(row("dtype", 2.0), row("shape", 1.0)) == (
        "+2.00 us in `mlp`: It was dtype. +1.00 us in `mlp`: It was shape."
    )
