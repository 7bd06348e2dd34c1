"""One Structured Streaming job on YTsaurus: job.py declares it, tables.py and transform.py are it."""
