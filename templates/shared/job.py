"""YOURS. The job in one declaration; `ytstream` is the runtime that runs it."""

from ytstream import Job

from .tables import OUTPUTS, QUEUE
from .transform import REJECT, transform

JOB = Job(
    name="{{ cookiecutter.project_slug }}",
    processing="{{ cookiecutter.processing }}",
    # transactional or, with no key in OUTPUTS, at_least_once: see docs/operations.md.
    guarantee="{{ cookiecutter.guarantee }}",
    queue=QUEUE,
    outputs=OUTPUTS,
    transform=transform,
    reject=REJECT,
    # Rows behind the watermark go to "rejected". With "count" they are only counted.
    late="reject",
    # Partitions of the state: as many as the executors have cores. The checkpoint fixes the number.
    shuffle_partitions=8,
)
