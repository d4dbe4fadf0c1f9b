"""Rules about what the capture lacks."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.model import AT_MOST, Candidate, Findings, percent

ATTRIBUTED = 0.90
LOW_ATTRIBUTION = "low-attribution"


def attribution(f: Findings) -> Iterator[Candidate]:
    if f.hlo_attributed is None or f.hlo_attributed >= ATTRIBUTED:
        return
    yield Candidate(
        LOW_ATTRIBUTION,
        "Attribute more kernels to HLO ops",
        "Much kernel time has no HLO op, so regions and families are incomplete.",
        (f"HLO-attributed: {percent(f.hlo_attributed)} of kernel time",),
        (
            "Capture once with command buffers off (--xla_gpu_enable_command_buffer=) to see which "
            "ops they hold.",
        ),
        0.0,
        AT_MOST,
    )
