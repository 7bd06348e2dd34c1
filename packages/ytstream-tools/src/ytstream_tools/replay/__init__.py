"""Rows that were read before, run again: captured batches, rehearsals, rejected rows."""
