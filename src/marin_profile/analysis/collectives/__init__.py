"""Collectives: what ran on each host, who met whom over all hosts, and who kept the others waiting.

`instances` reduces one host to columns, `matching` joins the hosts (`alignment` where steps have no
numbers), `stragglers` judges the waits, `bandwidth` knows bytes and the nccl-tests factors.
"""
