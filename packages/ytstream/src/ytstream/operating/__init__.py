"""Looks at a job from outside: what `status`, `metrics` and `page` show.

    standing                            where everything is, as one value
    screen  document  live              that value as tables, as JSON, as a view that renews itself
    limits                              --max-lag and --max-age
    retention                           remarks of `check` on what removes rows of a queue
    metrics  alerts                     that value for Prometheus, and rules for it
    page  period  curves  drawing  style    some hours of the ledger as one HTML file
    taken  capture                      rows of batches, and a batch as a folder of tests

It needs no driver and no Spark, and is not shipped with a job.
"""
