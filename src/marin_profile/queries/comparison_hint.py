"""Did it get better or worse? One summary describes one capture, so it cannot tell."""

from __future__ import annotations

from marin_profile.queries.model import CannotAnswer, Parameters, Query, intent
from marin_profile.schema import ProfileSummary


def run(summary: ProfileSummary, parameters: Parameters) -> CannotAnswer:
    return CannotAnswer(
        "One summary describes one capture; change over time needs a second one.",
        "Summarize the capture before and the one after; 'marin-profile compare --before F "
        "--after F' then tells what changed.",
    )


QUERY = Query(
    name="comparison_hint",
    description="Better or worse than another run: says what that takes.",
    example="Did it regress since the last run?",
    run=run,
    intents=(
        intent(13, "compare"),
        intent(10, "faster|slower|better|worse|improve", "before|since|than|last|previous|now"),
        intent(8, "slower", unless=("step", "device", "op")),
    ),
)
