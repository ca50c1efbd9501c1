"""The offsets log, loaded by a real broker of a release, as it does when it restarts.

Reading order: releases, source, release_broker, log_writer, loader_words, faults, asked, compared, run; forms shows
it, kept is what a gate makes of it.
May import: base, config, kafka, spark, polling, recording, reports, demo; libraries kafka.
"""
