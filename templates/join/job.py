"""YOURS. The job in one declaration; `ytstream` is the runtime that runs it."""

from ytstream import Job

from .tables import OUTPUTS, QUEUE, REFERENCE
from .transform import REJECT, transform

JOB = Job(
    name="{{ cookiecutter.project_slug }}",
    processing="{{ cookiecutter.processing }}",
    # transactional or at_least_once: see docs/operations.md.
    guarantee="{{ cookiecutter.guarantee }}",
    queue=QUEUE,
    outputs=OUTPUTS,
    transform=transform,
    reject=REJECT,
    reference=REFERENCE,
    # The most rows of the reference. All of them go through the driver to every executor.
    reference_rows=100_000,
)
