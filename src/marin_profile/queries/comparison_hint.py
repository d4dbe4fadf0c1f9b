"""Did it get better or worse? One summary describes one capture, so it cannot tell."""

from __future__ import annotations

from marin_profile.queries.model import CannotAnswer, Query, intent
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


def run(summary: ProfileSummary, parameters: Parameters) -> CannotAnswer:
    return CannotAnswer(
        "One summary describes one capture; change over time needs a second one.",
        "Capture before and after the change; 'marin-profile bundle --before-profile-dir DIR "
        "--after-profile-dir DIR --output-dir D' then says whether the step is slower, how sure "
        "that is, and what accounts for it. For summaries, 'marin-profile track --before F --after "
        "F' says only whether, 'marin-profile compare --before F --after F' only what changed, "
        "'marin-profile query AFTER --before BEFORE --question TEXT' why.",
    )


# Who asks so looks for a change to make, and none that was made.
_WANTED = ("can", "could", "should", "next", "try", "to", "would")

QUERY = Query(
    name="comparison_hint",
    description="Better or worse than before a change: says what that takes.",
    example="Did my change help?",
    run=run,
    intents=(
        intent(13, "compare"),
        intent(13, "changed", unless=_WANTED),
        intent(12, "merge"),
        intent(12, "change", "my|this|that|our|last|the", unless=_WANTED),
        intent(
            12,
            "did",
            "faster|slower|better|worse|improve|optimize|help|hurt|increased|decreased",
            unless=("what", "which", "how", "where"),
        ),
        intent(10, "faster|slower|better|worse|improve", "before|since|than|last|previous|now"),
        intent(8, "slower", unless=("step", "device", "op")),
    ),
)
