"""The sample rows and their expected outputs: the demo and the tests use both."""

from ytstream.demo.sample import Sample

from . import expected, rows

SAMPLE = Sample(
    rows=rows.rows,
    event_time=rows.EVENT_TIME,
    expected=expected.expected,
    others={"rejected": expected.rejected},
)
