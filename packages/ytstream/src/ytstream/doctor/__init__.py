"""Reads a SPYT streaming job that was written by hand and names what loses, repeats or stalls rows.

Nothing of the job runs and Spark is not needed: Python is parsed, settings are read as text.

    cli                                 the command
    screen                              findings as text or JSON
    of_settings  of_streams             the checks: settings, readers and writers,
    of_code  of_state                   the guarantee and the rows, state,
    of_commands  of_batch_reads         what is done to queues, what is read beside them,
    of_tables                           tables on the cluster
    job                                 what was read, as one value
    queries  frames  positions          streams: their writers, and what leads there
    settings                            Spark settings
    names  index  syntax                what a name in Python stands for, and where; its pieces
    files  shell                        the files of a job; variables of scripts
    rules                               the rules, each with its source

It is not shipped with a job.
"""
