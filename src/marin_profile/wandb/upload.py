"""How an artifact gets to W&B: what it holds, logged to a run, and waited for.

Contract
* `log_artifacts` logs them in order and yields each when W&B has it; an offline run keeps them in
  its folder, and there is nothing to wait for.
* What the SDK raises passes through; without an answer in time it is a TimeoutError.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
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


def log_artifacts(run: Any, uploads: Sequence[Upload], *, seconds: float) -> Iterator[Any]:
    """Log them to a live run, and wait at most so many seconds for all of them; the SDK's artifacts
    as W&B confirms them."""
    until = time.monotonic() + seconds
    logged = [
        run.log_artifact(_artifact(upload), aliases=list(upload.aliases) or None)
        for upload in uploads
    ]
    for artifact, upload in zip(logged, uploads, strict=True):
        if not run.offline:
            _wait(artifact, upload.name, seconds, until)
        yield artifact


def _wait(artifact: Any, name: str, seconds: float, until: float) -> None:
    left = max(int(until - time.monotonic()), 1)
    try:
        artifact.wait(timeout=left)
    except Exception as error:
        # The SDK's own class is not a TimeoutError, and older SDKs have none.
        if type(error).__name__ != "WaitTimeoutError":
            raise
        raise TimeoutError(f"W&B did not confirm {name} within {seconds:g} s") from error


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
