"""The Spark session, its JVM and its Python workers.

Reading order: session first; java, cds_archive and worker_daemon are what it starts with, start_failure says why it
does not.
May import: base, config; libraries py4j, pyarrow, pyspark.
"""
