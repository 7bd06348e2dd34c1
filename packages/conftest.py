"""Fixtures that the packages' tests share with the template's, and with each other."""

from tests.conftest import environments as environments
from tests.support.fixtures import client as client
from tests.support.fixtures import cluster as cluster
from tests.support.fixtures import connector as connector
from tests.support.fixtures import context_of as context_of
from tests.support.fixtures import driver_of as driver_of
from tests.support.fixtures import provisioned_of as provisioned_of
from tests.support.fixtures import root as root
from tests.support.fixtures import spark as spark
from tests.support.fixtures import stream_of as stream_of
from tests.support.fixtures import tablets as tablets
