"""The files of a job: Python is parsed, settings are read as text. Nothing of the job runs."""
