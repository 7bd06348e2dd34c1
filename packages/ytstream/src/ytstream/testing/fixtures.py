"""The pytest plugin for the tests of a job: it loads the one of ytstream-tools."""

pytest_plugins = ["ytstream_tools.testing.pytest_fixtures"]
