"""The state directory: whose it is, what is in it, who holds it.

Reading order: state_directory, then identity, location, files, contents, resume_file, lock, lease, standby, hidden.
May import: base, query, end_offsets, board; libraries py4j, pyarrow, pyspark.
"""
