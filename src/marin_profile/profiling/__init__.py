"""Taking captures in a running JAX program, and what becomes of them beside it.

A loop tells a Profiler of its steps; windows of steps become captures; each capture has a record
that goes from state to state until its summary is logged. Nothing here knows Levanter.

Contract: importing this package imports neither jax nor any module of it, so that the ingestion
process stays light.
"""
