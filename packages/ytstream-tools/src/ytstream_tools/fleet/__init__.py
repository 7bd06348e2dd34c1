"""`fleet`: all jobs that a token may see, in one table."""
