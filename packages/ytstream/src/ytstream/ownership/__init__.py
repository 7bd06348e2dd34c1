"""Which objects are a job's own: its marker in the ledger, the marks of its outputs, its record."""
