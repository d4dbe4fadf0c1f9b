"""Views of summaries and comparisons for people to read, a module each."""
