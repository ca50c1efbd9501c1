"""Groups asked of their coordinators every few seconds, where the log may not be read (`source.kind: admin`).

Reading order: requests (what kafka-python lacks), answers (as groups), client (one round), poller (the thread).
May import: base, kafka, board; libraries kafka.
"""
