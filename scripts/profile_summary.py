"""The command line under the name that older recipes call."""

from marin_profile.cli import main

if __name__ == "__main__":
    main()
