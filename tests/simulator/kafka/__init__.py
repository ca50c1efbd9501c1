"""Random lawful histories by Kafka's own group coordinator, in a JVM, on a clock that goes as fast as it can.

    Simulation.java         the coordinator of the broker's jars; topics, a clock, a log that is written as a recording
    Member.java             what clients have in common; HeartbeatMember: those of KIP-848 and after
    ClassicMember.java      with Kafka's own assignors; Consumer-, Share-, StreamsMember.java
    LawfulHistories.java    chance → an hour of the lives of some groups; SeededChance.java: the same for the same seed
    jvm                     compiled and running, asked for one history after the other
    judged                  what a replay says of a history, and what of it nobody has done anything for

`make histories` judges as many as are asked for. The coordinator beside it, in `tests/simulator`, is written by hand:
it knows what it holds, and can be made to write what a correct one never writes.
"""
