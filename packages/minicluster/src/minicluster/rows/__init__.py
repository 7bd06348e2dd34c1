"""Rows: the wire format, the types and schemas of columns, and the ways into that format."""
