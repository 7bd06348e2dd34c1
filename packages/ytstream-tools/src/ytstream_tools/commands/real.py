"""`real`: the job on a YTsaurus server, in a container or one that is named."""

import argparse

from ytstream.commands.command import Command, positive
from ytstream.declaration import user_errors
from ytstream.job import JobContext


def _without_cluster(context: JobContext, given: argparse.Namespace) -> int:
    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from ..real import session

    request = session.Request(given.proxy, given.image, given.folder.rstrip("/"), given.kills)
    return session.run(context.job, context.settings, given.config, SAMPLE, request)


def _arguments(parser: argparse.ArgumentParser) -> None:
    from ..real.image import IMAGE

    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--image", default=IMAGE, help="image of the container (default: %(default)s)"
    )
    which.add_argument("--proxy", default="", help="a running server, instead of a container")
    said = "a folder of the server, in which a folder of the trial is made; default: %(default)s"
    parser.add_argument("--folder", default="//tmp", help=said)
    parser.add_argument("--kills", type=positive, default=3, help="default: %(default)s")


COMMAND = Command(
    name="real",
    help="Run the job on a YTsaurus server, kill it, count every row, and submit it.",
    without_cluster=_without_cluster,
    # It runs on a cluster of its own or on --proxy.
    names_cluster=lambda _: False,
    arguments=_arguments,
    starts_jvm=True,
)
