"""Columns of tables.py, schemas of tables, and values of the type `string`."""
