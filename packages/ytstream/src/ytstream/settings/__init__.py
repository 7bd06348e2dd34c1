"""The configuration file: its keys, their validators, Spark settings, cores and memory."""
