"""The state directory: whose it is, what is in it, who holds it.

Reading order: state_directory, then identity, contents, resume_file, lock, standby.
"""
