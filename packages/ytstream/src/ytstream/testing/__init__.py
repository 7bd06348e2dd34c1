"""For the tests of a job: fixtures.py is a pytest plugin, the other modules are what it hands out.

A conftest.py names the plugin (``pytest_plugins = ["ytstream.testing.fixtures"]``) and provides two
fixtures of the session: ``job`` and ``sample``.

commands has what the command line offers besides. captured runs what `capture` has saved. rehearse
compares the deployed commit with the working tree: revisions has its files, replayed runs one
version over given batches, differences compares outputs.
"""
