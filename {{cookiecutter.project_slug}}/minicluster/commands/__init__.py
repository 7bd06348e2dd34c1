"""What both protocols offer and takes more than one call into the state."""
