"""`make soak`: the real job under a steady load of real commits, for as long as it is given.

commits.py    who commits, so many a second, and what was acknowledged
samples.py    memory and latency of a monitor, from outside, and how they grow
report.py     what a run came to, kept for the docs
__main__.py   a broker, the load, a monitor; a table; in the end nothing lost and every offset right

`make soak-alerts`, which is light: demo_alerts.py, the healthy demo for half an hour, and which alerts come of it.
"""
