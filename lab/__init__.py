"""What tests and benchmarks share: records of the coordinator, written by hand, and a monitor as its users run it.

Reading order: builders (one factory a record), coordinator_events (what is written for one thing that happens),
monitor_process (a command, or a monitor that is asked over HTTP).

It imports the model and streaming alone; nothing of either imports it, and no wheel has it.
"""
