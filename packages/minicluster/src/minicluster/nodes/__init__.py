"""The nodes: each job of an operation as local processes in a sandbox of its own."""
