"""One Structured Streaming job on YTsaurus, declared in job.py; ytstream runs it."""
