"""Fixtures that the packages' tests share with the template's."""

from tests.conftest import environments as environments
