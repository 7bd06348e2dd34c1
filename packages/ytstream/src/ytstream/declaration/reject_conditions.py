"""What the SQL conditions of REJECT and WARN say in their texts, without Spark."""

import re
from collections.abc import Iterator, Mapping

_TOKENS = re.compile(
    r"""(?<!\w)[rR](?:'[^']*'|"[^"]*")|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    r"""|(?P<literal>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""",
    re.DOTALL,
)
"""What Spark's lexer takes as one token (SqlBaseLexer.g4): raw literals, quoted names and comments,
in which a backslash stays, then the other literals."""
_MEANT = re.compile(r"""\\[\\'"%_]""")
"""Escapes that give what they say: themselves, or the character behind the backslash (Spark,
SparkParserUtils.unescapeSQLString, keeps the backslash of the last two for LIKE)."""
RAW_BY_DEFAULT = "spark.sql.parser.escapedStringLiterals"
"""With it Spark takes every literal as a raw one."""


def remarks(
    conditions: Mapping[str, str], spark_confs: Mapping[str, str], name: str = "REJECT"
) -> Iterator[str]:
    """Yield a remark for each literal whose backslashes Spark takes for escapes."""
    if spark_confs.get(RAW_BY_DEFAULT, "").lower() == "true":
        return
    for reason, condition in conditions.items():
        for found in _TOKENS.finditer(condition):
            if "\\" in _MEANT.sub("", literal := found["literal"] or ""):
                yield (
                    f"{name}[{reason!r}]: Spark takes the backslash in {literal} for an escape, so "
                    f"a regular expression loses it; write r{literal}"
                )
