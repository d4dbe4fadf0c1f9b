"""Everything that talks to W&B: artifacts and runs in, summaries and reports out."""
