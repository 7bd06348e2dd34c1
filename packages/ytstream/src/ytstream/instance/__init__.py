"""Which process runs the job: its lock, its end, and the request to stop."""
