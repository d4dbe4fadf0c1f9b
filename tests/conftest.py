"""Fixtures shared by all tests: where the real profiles lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from marin_profile.base.jit import COMPILED, PLAIN, forced

# The same examples in every run, however slow the machine; `--hypothesis-profile=random` looks
# further.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("random", max_examples=1000, deadline=None)
settings.load_profile("same")
# For runs in which only failing matters, not the smallest example (scripts/mutants.py).
settings.register_profile(
    "no_shrinking", parent=settings.get_profile("same"), phases=(Phase.explicit, Phase.generate)
)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What tests keep is not the user's, and starts empty."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


def _folder(variable: str) -> Path:
    """The folder an environment variable names; without it the test is skipped, or fails where
    MARIN_PROFILE_REQUIRE_TRACES=1 says that the real profiles must be there."""
    value = os.environ.get(variable, "")
    if value and Path(value).is_dir():
        return Path(value).resolve()
    reason = f"{variable} names no folder with real profiles"
    if os.environ.get("MARIN_PROFILE_REQUIRE_TRACES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module", params=[PLAIN, COMPILED])
def loops(request: pytest.FixtureRequest) -> Iterator[str]:
    """A module that uses it is tested with both forms of all loops."""
    with forced(request.param):
        yield request.param


@pytest.fixture(scope="session")
def traces() -> Path:
    return _folder("MARIN_PROFILE_TRACES")


@pytest.fixture(scope="session")
def reference() -> Path:
    return _folder("MARIN_PROFILE_REFERENCE")
