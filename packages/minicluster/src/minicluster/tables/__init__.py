"""Tables: their rows and tablets, and tablet transactions."""
