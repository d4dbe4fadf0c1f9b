"""The W&B SDK: its import, its connection, and its errors as ours.

Contract
* This module alone imports wandb, and only inside functions; where it is not installed, a
  MissingPackageError names what to install.
* What W&B does not have raises NotFoundError; a missing login, a network failure and every other
  failure of the service raise RemoteError; each in one sentence.
* A request that W&B does not answer is given up after $WANDB_HTTP_TIMEOUT, else 20 s.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from marin_profile.base.errors import (
    MissingPackageError,
    NotFoundError,
    ProfileError,
    RemoteError,
    UsageError,
)
from marin_profile.wandb.names import is_public

REQUEST_SECONDS = 20


def load_wandb() -> Any:
    try:
        import wandb
    except ImportError as error:
        raise MissingPackageError(
            "The wandb package is not installed; install it with "
            "pip install 'marin-profile[wandb]'."
        ) from error
    return wandb


def be_quiet() -> None:
    """Let the SDK neither print nor prompt in this process; $WANDB_SILENT=false overrides it."""
    os.environ.setdefault("WANDB_SILENT", "true")


def request_seconds() -> int:
    given = os.environ.get("WANDB_HTTP_TIMEOUT", "")
    return int(given) if given.isdecimal() and int(given) else REQUEST_SECONDS


def connect(base_url: str | None = None) -> Any:
    """The SDK's Api, logged in at `base_url`, else at the configured server."""
    wandb = load_wandb()
    with remote_errors("W&B"):
        if base_url and is_public(base_url) and is_public(wandb.setup().settings.base_url):
            base_url = None  # the login may be kept under another of its names
        overrides = {"base_url": base_url} if base_url else None
        return wandb.Api(overrides=overrides, timeout=request_seconds())


@contextmanager
def remote_errors(what: str, *, looked_up: bool = True) -> Iterator[None]:
    """Turn what the SDK raises into one of our errors about `what`, which was `looked_up` or is
    being made."""
    try:
        yield
    except ProfileError:
        raise
    except Exception as error:  # the SDK passes on those of its own parts as well
        raise _explained(error, what, looked_up) from error


def _explained(error: Exception, what: str, looked_up: bool) -> ProfileError:
    causes = list(_causes(error))
    lines = str(error).strip().splitlines()
    reason = lines[0].rstrip(" .") if lines else type(error).__name__
    if looked_up and any(_is_absence(cause) for cause in causes):
        return NotFoundError(f"{what} was not found ({reason}); check entity, project and name.")
    local = next((cause for cause in causes if _is_local(cause)), None)
    if local is not None:
        return UsageError(f"{what} cannot be stored here: {local}; use a folder with room.")
    if "API key" in reason or "wandb login" in reason:
        return RemoteError("W&B needs a login: run 'wandb login' or set WANDB_API_KEY.")
    failed = "cannot be reached" if looked_up else "was not accepted by W&B"
    return RemoteError(f"{what} {failed}: {reason}; check network, server and login.")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those it wraps; CommError keeps the one behind it in `exc`."""
    seen: list[BaseException] = []
    while isinstance(error, BaseException) and error not in seen:
        seen.append(error)
        yield error
        error = getattr(error, "exc", None) or error.__cause__


def _is_absence(error: BaseException) -> bool:
    # The SDK raises a bare ValueError for "not found"; subclasses are about malformed answers.
    return type(error) is ValueError or type(error).__name__ == "RunNotFoundError"


def _is_local(error: BaseException) -> bool:
    return (
        isinstance(error, OSError)
        and not isinstance(error, ConnectionError | TimeoutError)
        and error.errno is not None
        and type(error).__module__ == "builtins"
    )
