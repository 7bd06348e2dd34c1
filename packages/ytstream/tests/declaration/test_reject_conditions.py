"""A backslash that Spark would take out of a condition of REJECT is told."""

from __future__ import annotations

import pytest

from ytstream.declaration.reject_conditions import RAW_BY_DEFAULT, remarks


@pytest.mark.parametrize(
    ("condition", "literals"),
    [
        (r"line RLIKE '^\S+'", [r"'^\S+'"]),
        (r'line RLIKE "\d+" OR NOT url RLIKE ' + r"'\w'", [r'"\d+"', r"'\w'"]),
        (r"line RLIKE 'it\'s \S'", [r"'it\'s \S'"]),
        (r"concat(url, 'it''s', '\.')  = ''", [r"'\.'"]),
        (r"xr'\S' = line", [r"'\S'"]),
        (r"line RLIKE r'^\S+' AND url RLIKE R" + r'"\d"', []),
        (r"line RLIKE '^\\S+' OR line LIKE '100\%' OR line = 'it\'s'", []),
        ("`a\\b` = 'x' -- '\\S'\n/* '\\S' */ AND true", []),
    ],
)
def test_a_backslash_in_a_literal_that_is_not_raw_is_told(
    condition: str, literals: list[str]
) -> None:
    found = [*remarks({"odd": condition}, {})]
    assert [line.rpartition("write r")[2] for line in found] == literals
    assert all(line.startswith("REJECT['odd']: ") for line in found)
    assert not [*remarks({"odd": condition}, {RAW_BY_DEFAULT: "true"})]
