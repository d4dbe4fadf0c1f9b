"""Experiments whose runs leave captures of known step times, and plans for them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from builders_xspace import Space
from marin_profile.experiment.plan import Plan, plan_of

ARM = Path(__file__).with_name("experiment_arm.py")
ROUNDS = 8


def noise(name: str, scale: float) -> float:
    """The same for the same name, between -scale and scale."""
    return scale * (int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**31 - 1)


def step_us(folder: Path, run: str, us: float, batch: int = 64) -> None:
    """Five steps `us` apart; the run's name is that of the host, so that no two are alike."""
    made = Space(run)
    tpu = made.tpu(0, device_type_string="TPU v6 Lite")
    for step in range(5):
        at = us * step
        tpu.step(step, at, us).module("jit_step(7)", at, us, run_id=step)
        tpu.op(
            "dot.1",
            at,
            0.9 * us,
            category="convolution fusion",
            scope="jit(f)/mlp/dot",
            shape=f"f32[{batch},512]",
        )
    made.write(folder / f"{run}.xplane.pb")


def captures(folder: Path, arms: Mapping[str, float], scale: float = 0.002) -> Path:
    """Of each arm in each round: its factor of 1 ms, a drift of the rounds, and noise."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(-1, ROUNDS):
        which = f"round{number + 1:02}" if number >= 0 else f"warmup{-number:02}"
        for arm, factor in arms.items():
            run = f"{which}-{arm}"
            step_us(folder, run, 1000 * factor * (1 + 0.03 * number + noise(run, scale)))
    return folder


def texts(scripted: Path, arms: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    return {
        "command": [sys.executable, "-I", "-S", str(ARM), str(scripted)],
        "arms": dict(arms),
        "rounds": str(ROUNDS),
        **facts,
    }


def plan(scripted: Path, arms: Mapping[str, Any], folder: Path | None = None, **facts: Any) -> Plan:
    where = folder or scripted
    return plan_of(texts(scripted, arms, **facts), named="plan", files_from=where, folder=where)


def plan_file(path: Path, scripted: Path, arms: Mapping[str, Any], **facts: Any) -> Path:
    path.write_text(yaml.safe_dump(texts(scripted, arms, **facts), sort_keys=False))
    return path
