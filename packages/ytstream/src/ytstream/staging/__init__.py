"""Tables that wait in a folder of the job until the ledger has their micro-batch."""
