"""The version of the installed package."""

from __future__ import annotations


def package_version() -> str:
    """ "0+unknown" where the package runs from a folder that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("marin-profile")
    except PackageNotFoundError:
        return "0+unknown"
