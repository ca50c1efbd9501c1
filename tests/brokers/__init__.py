"""Real brokers of every release that the README names, and a monitor beside each: `make brokers`.

releases.py    the releases, what each needs, and its jars; java.py the Java that runs the old ones
node.py        a broker of a release, with ZooKeeper where it needs one
members.py     real members: the release's own Java consumer, and librdkafka, each in a process
printed.py     what `kafka-consumer-groups` of any release prints, as values, and the tool kept warm
story.py       five moments at which the monitor has to say what the tool says
upgrades.py    what gate and plan say of an upgrade, and what the broker does when a member tries
moments.py     a release's recording, with what its tool printed at each moment
loading.py     which release loads which log, as when a broker restarts
results.py     what came of it; page.py the table that is made of that
"""
