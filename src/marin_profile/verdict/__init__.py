"""Before and after: is the step slower, by how much, and how certain is that?"""

from __future__ import annotations

from marin_profile.verdict.assess import assess
from marin_profile.verdict.model import Assessment, Thresholds
from marin_profile.verdict.noise import Floors, NoiseFloor, noise_floor

__all__ = ["Assessment", "Floors", "NoiseFloor", "Thresholds", "assess", "noise_floor"]
