"""Collectives: what ran on each host, who met whom over all hosts, and who kept the others waiting.

`instances` reduces one host to columns, `matching` finds which executions are the same on all hosts
(`alignment` where steps have no numbers), `waits` measures them, `stragglers` judges the waits, and
`bandwidth` knows bytes and the factors of nccl-tests.
"""
