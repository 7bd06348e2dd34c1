"""Static tables."""
