"""For the tests of a job: fixtures.py is a pytest plugin, the other modules are what it hands out.

A conftest.py names the plugin (``pytest_plugins = ["ytstream.testing.fixtures"]``) and provides two
fixtures of the session: ``job`` and ``sample``.
"""
