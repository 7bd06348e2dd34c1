"""The job on a minicluster: killed at the worst moment, every row counted."""
