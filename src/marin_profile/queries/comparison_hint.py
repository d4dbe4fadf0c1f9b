"""Did it get better or worse? One summary describes one capture, so it cannot tell."""

from __future__ import annotations

from marin_profile.queries.model import CannotAnswer, Parameters, Query, intent
from marin_profile.schema import ProfileSummary


def run(summary: ProfileSummary, parameters: Parameters) -> CannotAnswer:
    return CannotAnswer(
        "One summary describes one capture; change over time needs a second one.",
        "Capture before and after the change; 'marin-profile bundle --before-profile-dir DIR "
        "--after-profile-dir DIR --output-dir D' then tells whether the step is slower, how sure "
        "that is, and what accounts for it. For summaries, 'marin-profile track --before F --after "
        "F' tells only whether, 'marin-profile compare --before F --after F' only what changed.",
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
