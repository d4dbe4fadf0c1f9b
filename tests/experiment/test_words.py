"""The first sentence of an experiment, for each way that it can come out."""

from __future__ import annotations

import pytest

from marin_profile.documents import markdown
from marin_profile.experiment.document import experiment_document
from marin_profile.experiment.findings import (
    ArmResult,
    Changed,
    ControlResult,
    Experiment,
    MemoryPeak,
)
from marin_profile.experiment.words import changed, headline, memory, verdict


def arm(name: str, standing: str, effect: float | None = None, **facts) -> ArmResult:
    known = effect is not None
    return ArmResult(
        rank=1,
        arm=name,
        standing=standing,
        effect=effect,
        low=effect - 1 if known else None,
        high=effect + 1 if known else None,
        pairs=5 if known else 0,
        command="x",
        **facts,
    )


def experiment(*arms: ArmResult, problem: str | None = None, **facts) -> Experiment:
    return Experiment(
        tool_version="0",
        worthwhile=1.0,
        rounds=20,
        warmup_rounds=1,
        control=ControlResult(
            arm="control", captures=21, seconds=60.0, command="x", problem=problem
        ),
        arms=arms,
        **{"measure": "typical", "most_rounds": 20, "is_over": True} | facts,
    )


WIN = arm("b", "wins", -3.0)
WON = (
    "b wins: its typical step is 3.0 % shorter than the control's (95 % interval -4.0 to -2.0 %), "
    "by 5 pairs of captures."
)
BATCH = "The 1st dimension, as a rule the batch, of most shapes differs: 64 and 32."


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (experiment(WIN), WON),
        (experiment(WIN, arm("a", "no_win", 0.1), arm("c", "slower", 5.0)), WON),
        (experiment(WIN, arm("a", "undecided", -1.0)), f"{WON} a is undecided."),
        (experiment(WIN, arm("x", "failed"), arm("y", "failed")), f"{WON} x and y failed."),
        (
            experiment(arm("b", "wins", -3.0, other_effect=2.0)),
            f"{WON} But its mean step is 2.0 % longer than the control's.",
        ),
        (
            experiment(WIN, arm("c", "wins", -2.0)),
            f"{WON} So does c (-2.0 %); winners are not compared with each other.",
        ),
        (
            experiment(arm("b", "not_comparable", -50.0, caveats=(BATCH,)), arm("a", "no_win", 0)),
            "No arm is known to win: the typical step of b is 50.0 % shorter than the control's, "
            f"but the two cannot be compared: {BATCH}",
        ),
        (
            experiment(arm("a", "no_win", 0.1), arm("b", "no_win", 0.2), arm("c", "slower", 5.0)),
            "No arm wins: a and b have no gain of 1 % or more; c is slower.",
        ),
        (
            experiment(arm("a", "undecided", -0.5, spread=2.0), measure="mean"),
            "Undecided: a stands at -0.5 % (95 % interval -1.5 to +0.5 %): it takes longer "
            "captures or less noise (now 2.0 % from run to run).",
        ),
        (
            experiment(arm("a", "undecided", -3.0, needed=12), most_rounds=6),
            "Undecided: a stands at -3.0 % (95 % interval -4.0 to -2.0 %): about 12 rounds would "
            "settle it if it stays so.",
        ),
        (
            experiment(arm("a", "failed"), problem="left no profile"),
            "Nothing can be judged: the control left no profile.",
        ),
        (experiment(arm("a", "failed")), "No arm could be judged. a failed."),
        (
            experiment(arm("a", "running"), is_over=False),
            "Not done yet: 20 rounds of at most 20.",
        ),
    ],
)
def test_the_answer(found: Experiment, said: str) -> None:
    assert headline(found) == said
    lead = markdown.render(experiment_document(found)).split("\n\n")[1]
    assert lead.replace("\\", "") == f"**{said}**"


def test_a_row() -> None:
    peak = MemoryPeak(space="hbm", control_size=4_000_000, size=3_000_000, delta_size=-1_000_000)
    part = Changed(name="mlp", kind="region", delta=-1500.0)
    one = arm("a", "not_comparable", -2.0, memory=peak, changed=part, caveats=(BATCH,))
    assert memory(one) == "3.0 MB (-1.0 MB, -25.0 %)"
    assert changed(one) == "mlp -1.50 ms"
    assert verdict(experiment(one), one) == "shorter, but not comparable"
    assert memory(WIN) == changed(WIN) == "n/a"
