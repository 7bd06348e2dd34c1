"""Commands for a laptop or CI: submit, status, report, replay, demo, and the test kit."""
