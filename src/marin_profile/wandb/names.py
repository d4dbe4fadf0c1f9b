"""How people name a run or an artifact of W&B -> entity, project and name.

Contract: a name is parsed by its form alone, without a request to W&B. What the name leaves out
comes from the options, then from $WANDB_ENTITY and $WANDB_PROJECT. A missing project is a
UsageError; without an entity W&B takes the account's default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from marin_profile.base.errors import UsageError

_PUBLIC_API = "https://api.wandb.ai"
# Pages and interfaces of the one public service.
_PUBLIC_HOSTS = (
    *("wandb.ai", "www.wandb.ai", "app.wandb.ai", "api.wandb.ai"),
    *("forge.coreweave.com", "api.forge.coreweave.com"),
)


@dataclass(frozen=True)
class WandbTarget:
    """A run, or an artifact with its alias, as the user named it. `base_url`: a URL's server."""

    entity: str | None
    project: str
    name: str
    base_url: str | None = None

    @property
    def path(self) -> str:
        return "/".join(part for part in (self.entity, self.project, self.name) if part)


def artifact_target(
    text: str, *, entity: str | None = None, project: str | None = None, alias: str | None = None
) -> WandbTarget:
    """`[[entity/]project/]name[:alias]`; the options fill in what is missing."""
    parts = text.strip().split("/")
    name, colon, own_alias = parts[-1].partition(":")
    if len(parts) > 3 or not all(parts) or not name or (colon and not own_alias):
        raise UsageError(f"{text!r} is no artifact; name it as entity/project/name:alias.")
    place = _place(parts[:-1], entity, project, f"The artifact {text!r}")
    return WandbTarget(*place, f"{name}:{own_alias or alias or 'latest'}")


def run_target_of(
    text: str, *, entity: str | None = None, project: str | None = None
) -> WandbTarget:
    """A run id, `entity/project/run_id`, or the URL of the run's page."""
    text = text.strip()
    if "://" in text:
        return _run_of_url(text)
    parts = [part for part in text.split("/") if part]
    if len(parts) == 4 and parts[2] == "runs":
        del parts[2]
    if not 1 <= len(parts) <= 3:
        raise UsageError(f"{text!r} is no run; name its id, entity/project/run_id, or its URL.")
    return WandbTarget(*_place(parts[:-1], entity, project, f"The run {text!r}"), parts[-1])


def is_public(url: str) -> bool:
    return urlsplit(url).hostname in _PUBLIC_HOSTS


def _run_of_url(url: str) -> WandbTarget:
    address = urlsplit(url)
    parts = [unquote(part) for part in address.path.split("/") if part]
    at = len(parts) - parts[::-1].index("runs") - 1 if "runs" in parts else 0
    if at < 2 or len(parts) == at + 1:
        raise UsageError(f"{url} is no run's page; it should end in entity/project/runs/run_id.")
    entity, project, run_id = parts[at - 2], parts[at - 1], parts[at + 1]
    if is_public(url):
        return WandbTarget(entity, project, run_id, _PUBLIC_API)
    prefix = "".join(f"/{part}" for part in parts[: at - 2])
    return WandbTarget(entity, project, run_id, f"{address.scheme}://{address.netloc}{prefix}")


def _place(
    above: list[str], entity: str | None, project: str | None, what: str
) -> tuple[str | None, str]:
    if above:
        project = above[-1]
    if len(above) > 1:
        entity = above[0]
    project = project or os.environ.get("WANDB_PROJECT")
    if not project:
        raise UsageError(f"{what} names no project; add --project (and --entity).")
    return entity or os.environ.get("WANDB_ENTITY"), project
