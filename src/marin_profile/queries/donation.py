"""Which inputs of programs are donated: updated in place instead of copied to an output."""

from __future__ import annotations

from marin_profile.queries.model import CannotAnswer, Query, intent
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


def run(summary: ProfileSummary, parameters: Parameters) -> CannotAnswer:
    return CannotAnswer(
        "The summary does not say which inputs share their memory with an output.",
        "Look at input_output_alias in the compiled program (step.lower(...).compile().as_text()); "
        "JAX warns of donated buffers that were not usable.",
    )


QUERY = Query(
    name="donation",
    description="Which inputs of programs are donated, and which could be.",
    example="Is donation working?",
    run=run,
    parameters=("program",),
    intents=(intent(15, "donate"),),
)
