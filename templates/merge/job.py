"""YOURS. The job in one declaration; `ytstream` is the runtime that runs it."""

from ytstream import Job

from .tables import OUTPUTS, QUEUE
from .transform import MERGE, REJECT, transform

JOB = Job(
    name="{{ cookiecutter.project_slug }}",
    processing="{{ cookiecutter.processing }}",
    # MERGE needs the batch's transaction: a row that it reads must not change before it is written.
    guarantee="{{ cookiecutter.guarantee }}",
    queue=QUEUE,
    outputs=OUTPUTS,
    transform=transform,
    merge=MERGE,
    reject=REJECT,
)
