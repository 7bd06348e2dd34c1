"""The command line: each command is one object in one file."""
