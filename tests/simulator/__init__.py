"""A reference coordinator: writes the log a Kafka 4.3 broker would, and knows what the log then says.

What the replica concludes is held against what this package remembers, so it shares nothing with the replica but the
codec (through `tests.builders`). It follows coordinator-records, section 4, in its own words:

    memory        what a coordinator holds of a group, and that as a GROUP view
    assignors     range, sticky and cooperative-sticky, and the target of a consumer group
    classic       generations: joins, leaves, lost rounds, static members (4.1)
    consumer      epochs: joins, throttled targets, members moving one by one, static members (4.4, 4.5)
    conversions   from one to the other and back, online and offline (4.6)
    coordinator   all of it behind one door, with a clock and a log; commits and deletions (4.2)
    faults        what a correct coordinator never writes, one at a time
    driver        chance → things that happen

Every event is a list of records of one timestamp. What cannot happen now is refused and writes nothing. Not here, and
not in any random history therefore: regular expressions, share and streams groups, transactions, several topic ids.
"""
