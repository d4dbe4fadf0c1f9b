"""`python -m marin_profile` is `marin-profile`."""

from marin_profile.cli import main

if __name__ == "__main__":
    main()
