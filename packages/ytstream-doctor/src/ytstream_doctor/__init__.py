"""Names what loses, repeats or stalls rows in a SPYT job that was written by hand."""
