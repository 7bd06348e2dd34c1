"""`submit`: look, show what is started, hand it to spark-submit, wait for the first batch."""
