"""The sample, its outputs and its rejected rows in the terminal, again on each save."""
