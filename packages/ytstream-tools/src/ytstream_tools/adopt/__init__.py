"""From a queue that exists to the files of a job: columns, sample rows, a first transform()."""
