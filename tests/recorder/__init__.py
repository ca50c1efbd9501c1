"""Recordings of real brokers of several releases: `python -m tests.recorder VERSION`.

    versions.py     the releases, what each needs said, and its jars
    clients.py      Kafka's own clients of that release; old_client.py one as old as brokers take it
    scene.py        what a scenario has at hand
    scenarios/      the table: what is played, since which release, and which alarms it is worth
    truth.py        what Kafka's own tools say of the groups at the end
    recordings.py   what has been recorded

A scenario makes a group of its own name, so that a recording of many reads as many.
"""
