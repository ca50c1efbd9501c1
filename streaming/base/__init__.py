"""What any room may use: errors, text, files, threads, times, logging.

Reading order: each file stands alone; errors and stages are everywhere.
May import: no other room; libraries structlog.
"""
