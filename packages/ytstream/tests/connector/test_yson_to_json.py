"""Each value of YSON as the JSON text that json_of gives."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from yt import yson

from ytstream.connector import compile_java
from ytstream.connector.java import Java, jvm_of

pytestmark = pytest.mark.spark

Converted = Callable[[bytes], str]
"""Returns the JSON text of YSON."""

TEXTS: dict[bytes, str] = {
    b"#": "null",
    b"%true": "true",
    b"%false": "false",
    b"0": "0",
    b"-0": "0",
    b"+7": "7",
    b"-9223372036854775808": "-9223372036854775808",
    b"9007199254740993": "9007199254740993",
    b"18446744073709551615u": "18446744073709551615",
    b"1.": "1.0",
    b"-0.0": "-0.0",
    b"1e-7": "1.0E-7",
    b"%nan": '"nan"',
    b"%inf": '"inf"',
    b"%+inf": '"inf"',
    b"%-inf": '"-inf"',
    b'""': '""',
    b"_a-b.c%d": '"_a-b.c%d"',
    rb'"\x41\101\n\"\\\a\q\U0001f600"': '"A' + r"A\n\"\\\u0007" + 'q\U0001f600"',
    b'"\x00\x1f\x7f"': '"\\u0000\\u001f\x7f"',
    "ж€\U0001f600".join('""').encode(): '"ж€\U0001f600"',
    b'"\xff"': '{"$bytes":"/w=="}',
    b'"\xed\xa0\x80"': '{"$bytes":"7aCA"}',
    b'"\xc0\xaf"': '{"$bytes":"wK8="}',
    b'"\xf4\x90\x80\x80"': '{"$bytes":"9JCAgA=="}',
    b'"\xd0"': '{"$bytes":"0A=="}',
    b"[]": "[]",
    b" [ 1 ; ]": "[1]",
    b"[1;[{};[]];#]": "[1,[{},[]],null]",
    b"{}": "{}",
    b"{a=1;\n\tb=2 ; }": '{"a":1,"b":2}',
    b'{"$value"=1;"$$attributes"=2;"a$"=3}': '{"$$value":1,"$$$attributes":2,"a$":3}',
    b'{"\xff"=1;"$bytes"=2}': '{"$bytes:/w==":1,"$$bytes":2}',
    b'{""={}}': '{"":{}}',
    b"<>5": '{"$attributes":{},"$value":5}',
    b"<a=1>{b=<c=%true>#}": (
        '{"$attributes":{"a":1},"$value":{"b":{"$attributes":{"c":true},"$value":null}}}'
    ),
    b'<a=<b=c>d>"\xff"': (
        '{"$attributes":{"a":{"$attributes":{"b":"c"},"$value":"d"}},"$value":{"$bytes":"/w=="}}'
    ),
    b"[<a=1>[];<a=1>2]": (
        '[{"$attributes":{"a":1},"$value":[]},{"$attributes":{"a":1},"$value":2}]'
    ),
    b"[" * 100_000 + b"]" * 100_000: "[" * 100_000 + "]" * 100_000,
    b"<a=" * 10_000 + b"1" + b">1" * 10_000: (
        '{"$attributes":{"a":' * 10_000 + "1" + '},"$value":1}' * 10_000
    ),
    b"\x02\x01": "-1",
    b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "-9223372036854775808",
    b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "18446744073709551615",
    b"\x03\x00\x00\x00\x00\x00\x00\xf8\x3f": "1.5",
    b"[\x04;\x05]": "[false,true]",
    b"{\x01\x02a=\x01\x04\x01\xfe}": '{"a":{"$bytes":"Af4="}}',
}
"""By YSON: its JSON. The grammar is that of core/yson/parser_detail.h."""
BROKEN = (
    b"", b" ", b"{", b"{a=", b"{a=1", b"{a}", b"{a;}", b"{1=2}", b"{a=1 b=2}", b"[1 2]", b"[1}",
    b"[;]", b"1 2", b"]", b"<a=1>", b"<a=1", b"<a=1><b=2>3", b'"a', b'"a\\', b"%yes", b"%", b"1a",
    b"--1", b"1f", b"0x1", b"NaN;", b"9223372036854775808", b"18446744073709551616u", b"-1u",
    b"1.e", b"\xff", b"\x07", b"\x01", b"\x01\x04a", b"\x01\x01", b"\x02\x80",
    b"\x02" + b"\xff" * 11, b"\x03\x00", b"[" * 100_000,
)  # fmt: skip


@pytest.fixture(scope="module")
def converted(spark: SparkSession) -> Converted:
    """Compile the Java of the connector, and return the function that json_of calls."""
    assert compile_java.unavailable(spark) == ""
    java = Java(jvm_of(spark))
    return lambda text: str(java["ytstream.JsonOf.of"](text).toString())


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:20]))
def test_yson_becomes_json(converted: Converted, text: bytes) -> None:
    assert converted(text) == TEXTS[text]


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text[:20]))
def test_broken_yson_is_refused(converted: Converted, text: bytes) -> None:
    with pytest.raises(Exception, match=r"json_of: broken YSON, .* at byte [0-9]+ of"):
        converted(text)


def _attributed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    attributes = st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=2)
    return st.builds(lambda value, of: yson.to_yson_type(value, attributes=of), values, attributes)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(0, 2**64 - 1).map(yson.YsonUint64)
    | st.floats()
    | st.text()
    | st.binary()
)
_KEYS = st.text(max_size=4) | st.binary(max_size=4) | st.sampled_from(["$value", "$$", "$bytes"])
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4) | _attributed(inner)
    ),
    max_leaves=12,
)


@pytest.mark.thorough
@given(value=_VALUES, form=st.sampled_from(["binary", "text", "pretty"]))
@settings(max_examples=200)
def test_a_value_is_the_same_in_json(converted: Converted, value: Any, form: str) -> None:
    """The JSON is read with the digits of its integers, and says whether a number is a double."""
    text = yson.dumps(value, yson_format=form)
    assert repr(json.loads(converted(text))) == repr(_as_json(yson.loads(text, encoding=None)))


def _as_json(value: Any) -> Any:
    if getattr(value, "attributes", None):
        return {"$attributes": _as_json(value.attributes), "$value": _without_attributes(value)}
    return _without_attributes(value)


def _without_attributes(value: Any) -> Any:
    if isinstance(value, yson.YsonEntity):
        return None
    if isinstance(value, Mapping):
        return {_text(key, _escaped, "$bytes:{}".format): _as_json(value[key]) for key in value}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, bytes):
        return _text(value, str, lambda found: {"$bytes": found})
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return bool(value) if isinstance(value, bool | yson.YsonBoolean) else int(value)


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _text(value: bytes, text: Callable[[str], Any], other: Callable[[str], Any]) -> Any:
    try:
        return text(value.decode())
    except UnicodeDecodeError:
        return other(b64encode(value).decode())
