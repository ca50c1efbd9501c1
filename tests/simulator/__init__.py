"""A reference coordinator: writes the log that a Kafka broker would, and knows what the log then says.

What the replica concludes is held against what this package remembers, so it shares nothing with the replica but the
codec (through `lab.builders`). It follows docs/coordinator-log.md, "Write order", in its own words:

    cluster       which release the broker is of (4.0 to 4.3), and which topics there are
    memory        what a coordinator holds of a group; `views`: that as a GROUP view
    assignors     range, sticky and cooperative-sticky, and the targets of consumer and share groups
    classic       generations: joins, leaves, lost rounds, static members (4.1)
    consumer      epochs: joins, expressions, throttled targets, members moving one by one, static members (4.4, 4.5)
    conversions   from one to the other and back, online and offline (4.6)
    share         members that share, and delivery state that is set up first (4.7)
    streams       topologies and tasks: active, standby and warm-up (4.8)
    log           the log, its clock and the groups
    offsets       commits, transactions, expiry and deletions (4.2, 4.3, 10)
    coordinator   all of it behind one door
    readers       what a monitor's two readers get of the log, and when
    faults        what a correct coordinator never writes, one at a time
    recorded      recordings of real brokers, read as requests
    driver        chance → things that happen
    kafka         Kafka's own coordinator beside it, in a JVM, with clients on a clock: hours of lawful histories

Every event is a list of records of one timestamp. What cannot happen now is refused and writes nothing.
"""
