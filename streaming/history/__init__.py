"""The Parquet history: written, merged, queried.

Reading order: tables, writer, store, queries; log_archive holds records for recordings.
"""
