"""The Parquet history: written, merged, queried.

Reading order: tables, writer, store, burn_down, queries; log_archive holds records for recordings.
May import: base, config, recording, board, sinks; libraries pyarrow.
"""
