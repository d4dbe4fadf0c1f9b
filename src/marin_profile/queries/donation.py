"""Which inputs of programs are donated: their memory is an output's too, which updates them in
place; and which could be, since an output has their shape and size and takes memory of its own."""

from __future__ import annotations

from marin_profile.base.units import Bytes
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import fold_program
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary

BASIS = "XLA's plan of each program"
_UNKNOWN = CannotAnswer(
    "The summary does not say which inputs share their memory with an output.",
    "Summarize an xplane file with HLO protos with this version; or look at input_output_alias in "
    "the compiled program (step.lower(...).compile().as_text()), and at JAX's warning of donated "
    "buffers that were not usable.",
)


class DonationRow(Row, frozen=True, kw_only=True):
    """One program and memory space, on one device; sizes are at least where not `is_complete`."""

    program_id: str
    module: str | None = None
    space: str
    parameter_size: Bytes
    output_size: Bytes
    donated_size: Bytes | None
    donatable_size: Bytes | None
    donatable_arguments: list[str]
    is_complete: bool


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    wanted = fold_program(parameters.program) if parameters.program else None
    plans = [
        row
        for row in summary.memory or ()
        if row.donated_size is not None and wanted in (None, fold_program(row.module or ""))
    ]
    if not plans:
        return _UNKNOWN
    plans.sort(key=lambda row: (-(row.donatable_size or 0), -(row.donated_size or 0)))
    donatable = any(row.donatable_size for row in plans)
    return listing(
        BASIS,
        [DonationRow.of(row) for row in plans],
        limit=parameters.limit,
        note="Donate an input (donate_argnums) only if nothing reads it after the call."
        if donatable
        else "No input that is not donated has the shape and size of an output of its own.",
    )


QUERY = Query(
    name="donation",
    description="Which inputs of programs are donated, and which could be.",
    example="Is donation working?",
    run=run,
    rows=(DonationRow,),
    parameters=("limit", "program"),
    intents=(intent(15, "donate"),),
)
