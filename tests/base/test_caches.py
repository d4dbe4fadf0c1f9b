"""What is kept of texts that repeat is bounded, in every module that reads names from files."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import marin_profile.analysis
import marin_profile.events
import marin_profile.readers
from marin_profile.base.caches import MOST_KEPT
from marin_profile.events.classify import canonical_name

MODULES = [
    found.name
    for package in (marin_profile.analysis, marin_profile.events, marin_profile.readers)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_no_cache_grows_without_end(name: str) -> None:
    for each in vars(import_module(name)).values():
        if hasattr(each, "cache_info"):
            assert each.cache_info().maxsize == MOST_KEPT, each.__name__


def test_what_fell_out_is_answered_again() -> None:
    for number in range(MOST_KEPT + 1):
        canonical_name(f"op_{number}.{number}")
    assert canonical_name.cache_info().currsize == MOST_KEPT
    assert canonical_name("%op_0.0") == "op_0"
