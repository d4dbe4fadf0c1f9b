"""What the step would take if one thing were different: a replay of the capture's own order.

In go the tracks of all hosts and their collectives, out come changes with their savings.
"""
