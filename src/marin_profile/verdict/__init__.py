"""Whether a change made the step slower: statistics and the verdict."""
