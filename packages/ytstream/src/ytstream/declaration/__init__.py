"""What job.py, tables.py and transform.py declare, and whether it is valid."""
