"""The ledger and the consumer: rows of batches, offsets, and the positions of a job."""
