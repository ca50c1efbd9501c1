"""How fast the monitor is, beside what the same machine does without it.

    make bench                                    every part of a monitor, its figures into bench/results.json
    make bench PARTS="catch-up latency"           some of them; batch-cost stands for all of its sizes
    make bench PARTS=million                      up to a million groups, which take twenty minutes
    make bench PARTS=peers                        beside Burrow, KMinion, kafka_exporter, whichever is installed
    python -m bench catch-up --groups 2000        at another size; the figures are shown and replace none
    python -m bench latency --tiny                shows in seconds that it works

Each part writes its log, runs the monitor on it, compares what it shows with what was written, and only then reports:
what it measured, and in the same run the reference that it is to be held to (a bare Spark read of the same log, a plain
client that only reads, the producer's own wait for an acknowledgement, a group of ten partitions …). Every figure of
wall time has its processor time beside it, of the whole process tree, and `others_share`: what everything else took of
the machine meanwhile, the broker and the generator of the load among it.

    log.py, writer.py        the generator: what a log leads to is known exactly
    stage.py                 broker, logs, and monitors run as users run them: `group-monitor run --config FILE`
    truth.py                 the comparison of what is shown with what was written
    process_tree.py          processor time and memory of a process and all below it
    parts.py and the modules that it names      the parts
    figures.py, results.py   what they report

Only the catch-up and the shares of a million groups do not run as a process of their own: their subject is a warm
session, so the job's query runs in the benchmark's process (`query.py`). Linux only: what processes use is read from
/proc.
"""
