"""The vocabulary of a profile: its events as columns, and what their names mean."""
