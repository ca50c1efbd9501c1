"""What any room may use: errors, text, files, threads, times, logging."""
