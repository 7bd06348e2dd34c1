"""``make demo``: a minicluster, rows, the job, a kill at the worst moment, and a count."""
