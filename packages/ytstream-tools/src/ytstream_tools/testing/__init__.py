"""For the tests of a job: fixtures.py is a pytest plugin, the other modules are what it provides.

A conftest.py names the plugin (``pytest_plugins = ["ytstream.testing.fixtures"]``) and provides two
fixtures of the session: ``job`` and ``sample``. Tests of a job import from ``ytstream.testing``,
which is the public name of these modules.
"""
