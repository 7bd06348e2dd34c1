"""The public names of the demo, for the sample and the tests of a job. See ytstream.testing."""
