"""What a comparison's figures are of, in words: steps, executions of a program, whole captures."""

from __future__ import annotations

from marin_profile.comparison.executions import PROGRAM
from marin_profile.comparison.model import Comparison


def unit(comparison: Comparison) -> str:
    basis = comparison.basis
    if basis is None:
        return "step"
    return "execution" if basis.kind == PROGRAM else "capture"


def a_unit(comparison: Comparison) -> str:
    return f"{'an' if unit(comparison) == 'execution' else 'a'} {unit(comparison)}"


def is_per_device(comparison: Comparison) -> bool:
    """An execution is one device's."""
    return comparison.basis is None or comparison.basis.kind != PROGRAM


def per_unit(comparison: Comparison) -> str:
    """As the beginning of a sentence."""
    return f"Per {unit(comparison)}{' and device' if is_per_device(comparison) else ''}"
