"""Some hours of the ledger as one HTML file."""
