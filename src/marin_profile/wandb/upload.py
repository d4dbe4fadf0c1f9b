"""How an artifact gets to W&B: what it holds, logged to a run, and waited for.

Contract
* `log_artifacts` logs them in order and returns when W&B has them; an offline run keeps them in
  its folder, and there is nothing to wait for.
* What the SDK raises passes through, TimeoutError among it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marin_profile.wandb.session import load_wandb


@dataclass(frozen=True)
class Upload:
    """One artifact. It holds `files` (name -> content), what lies in `folder`, and a `reference`
    (the URL of what is not uploaded itself); without `aliases` W&B gives it "latest"."""

    name: str
    type: str
    metadata: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)
    folder: Path | None = None
    reference: str | None = None
    aliases: tuple[str, ...] = ()


def log_artifacts(run: Any, uploads: Sequence[Upload], *, seconds: float) -> list[Any]:
    """Log them to a live run, and wait at most so many seconds for each; the SDK's artifacts."""
    logged = [
        run.log_artifact(_artifact(upload), aliases=list(upload.aliases) or None)
        for upload in uploads
    ]
    if not run.offline:
        for artifact in logged:
            artifact.wait(timeout=max(int(seconds), 1))
    return logged


def _artifact(upload: Upload) -> Any:
    artifact = load_wandb().Artifact(upload.name, type=upload.type, metadata=dict(upload.metadata))
    for name, content in upload.files.items():
        with artifact.new_file(name, mode="wb") as stream:
            stream.write(content)
    if upload.folder is not None:
        artifact.add_dir(str(upload.folder))
    if upload.reference is not None:
        artifact.add_reference(upload.reference, checksum=False)
    return artifact
