"""Reads a SPYT streaming job that was written by hand and names what loses, repeats or stalls rows.

Nothing of the job runs and Spark is not needed: Python is parsed, settings are read as text.

    cli                                 the command
    screen                              findings as text or JSON
    of_settings  of_code                the checks: settings, queries,
    of_commands  of_tables              what is done to queues, tables on the cluster
    job                                 what was read, as one value
    queries  frames                     streams: their writers, and what leads there
    settings  names                     Spark settings; what a name in Python stands for
    files  rules                        the files of a job; the rules, each with its source

It is not shipped with a job.
"""
