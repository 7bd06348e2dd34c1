"""YOURS. The job in one declaration; `ytstream` is the runtime that runs it."""

from ytstream import Job

from .tables import OUTPUTS, QUEUE
from .transform import REJECT, transform

JOB = Job(
    name="{{ cookiecutter.project_slug }}",
    processing="{{ cookiecutter.processing }}",
    # Totals need the batch's transaction: a write that is repeated would be added twice.
    guarantee="{{ cookiecutter.guarantee }}",
    queue=QUEUE,
    outputs=OUTPUTS,
    transform=transform,
    reject=REJECT,
)
