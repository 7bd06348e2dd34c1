"""`make reference`: a sorted dynamic table for lookups by key, built from a static table."""
