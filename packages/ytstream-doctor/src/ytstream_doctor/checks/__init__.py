"""One module for each group of rules; each yields its findings."""
