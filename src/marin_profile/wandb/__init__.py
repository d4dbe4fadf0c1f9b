"""W&B: artifacts and runs in, artifacts out.

Contract: `session` alone imports the SDK; whatever needs it asks there.
"""
