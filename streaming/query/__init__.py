"""Everything that runs inside Spark's query: source, stateful step, sink.

Reading order: source reads the log; commit_compaction and row_codec make rows of it, task_keys spread them over tasks;
processor and shard_task replay them on the state in state_cache; row_codec and foreach_batch bring the result to the
driver. first_reading has what a first catch-up does otherwise, former_state what earlier releases left.
May import: base, config, kafka; libraries confluent_kafka, numpy, pandas, py4j, pyarrow, pyspark.
"""
