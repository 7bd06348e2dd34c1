"""`farm_hash`: Google's FarmHash of values (client/table_client/unversioned_value.cpp).

Strings: Fingerprint64, which is farmhashna::Hash64. Numbers: Fingerprint of 64 and of 128 bits.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MULTIPLIER = 0x9DDFEA08EB382D69
_SEED = 0xDEADC0DE
_WORD, _HALF, _DOUBLE = Struct("<Q"), Struct("<I"), Struct("<d")


def farm_hash(*values: Any) -> int:
    """Return the hash of values; null is a value."""
    result = _SEED
    for value in values:
        result = _pair(result, fingerprint(value))
    return result ^ len(values)


def fingerprint(value: Any) -> int:
    """Return the fingerprint of one value, whatever its type."""
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, float):
        return _number(_WORD.unpack(_DOUBLE.pack(value))[0])
    return _number(int(value or 0) & _MASK)


def _number(value: int) -> int:
    value = value * _MULTIPLIER & _MASK
    return _last_steps(value)


def _pair(low: int, high: int) -> int:
    mixed = (low ^ high) * _MULTIPLIER & _MASK
    mixed ^= mixed >> 47
    return _last_steps((high ^ mixed) * _MULTIPLIER & _MASK)


def _last_steps(value: int) -> int:
    value = (value ^ value >> 44) * _MULTIPLIER & _MASK
    return (value ^ value >> 41) * _MULTIPLIER & _MASK


# Strings


def _text(data: bytes) -> int:
    size = len(data)
    if size > 64:
        return _long(data)
    multiplier = _K2 + 2 * size & _MASK
    if size > 32:
        return _up_to_64(data, multiplier)
    if size > 16:
        return _mix(*_halves(data, _K1, multiplier), multiplier)
    if size >= 8:
        first, last = _word(data, 0) + _K2, _word(data, size - 8)
        low = _rotated(last, 37) * multiplier + first
        high = (_rotated(first, 25) + last) * multiplier
        return _mix(low, high, multiplier)
    if size >= 4:
        first, last = _HALF.unpack_from(data)[0], _HALF.unpack_from(data, size - 4)[0]
        return _mix(size + (first << 3), last, multiplier)
    if size:
        first, last = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return _shifted(first * _K2 ^ last * _K0) * _K2 & _MASK
    return _K2


def _up_to_64(data: bytes, multiplier: int) -> int:
    size = len(data)
    first = _word(data, 0) * _K2
    low, other = _halves(data, _K2, multiplier)
    high = _mix(low, other, multiplier)
    third, fourth = _word(data, 16) * multiplier, _word(data, 24)
    fifth = (low + _word(data, size - 32)) * multiplier
    sixth = (high + _word(data, size - 24)) * multiplier
    return _mix(
        _rotated(third + fourth, 43) + _rotated(fifth, 30) + sixth,
        third + _rotated(fourth + first, 18) + fifth,
        multiplier,
    )


def _halves(data: bytes, factor: int, multiplier: int) -> tuple[int, int]:
    """Return both numbers made of the first and last 16 bytes."""
    size = len(data)
    first, second = _word(data, 0) * factor & _MASK, _word(data, 8)
    last = _word(data, size - 8) * multiplier & _MASK
    before = _word(data, size - 16) * _K2
    low = _rotated(first + second, 43) + _rotated(last, 30) + before
    return low & _MASK, first + _rotated(second + _K2, 18) + last & _MASK


def _long(data: bytes) -> int:
    x = 81 * _K2 + _word(data, 0) & _MASK
    y = 81 * _K1 + 113 & _MASK
    z = _shifted(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    whole = (len(data) - 1) // 64 * 64
    for place in range(0, whole, 64):
        x, y, z, v, w = _round(data, place, (x, y, z, v, w), _K1, 1)
    multiplier = _K1 + ((z & 0xFF) << 1) & _MASK
    tail = w[0] + (len(data) - 1 & 63)
    v = (v[0] + tail & _MASK, v[1])
    w = (tail + v[0] & _MASK, w[1])
    # A round leaves x and z exchanged; the last one does not exchange them.
    z, y, x, v, w = _round(data, len(data) - 64, (x, y, z, v, w), multiplier, 9)
    return _mix(
        _mix(v[0], w[0], multiplier) + _shifted(y) * _K0 + x,
        _mix(v[1], w[1], multiplier) + z,
        multiplier,
    )


_Pair = tuple[int, int]
_State = tuple[int, int, int, _Pair, _Pair]


def _round(data: bytes, place: int, state: _State, multiplier: int, weight: int) -> _State:
    x, y, z, v, w = state
    x = _rotated(x + y + v[0] + _word(data, place + 8), 37) * multiplier
    y = _rotated(y + v[1] + _word(data, place + 48), 42) * multiplier
    x = (x ^ w[1] * weight) & _MASK
    y = y + v[0] * weight + _word(data, place + 40) & _MASK
    z = _rotated(z + w[0], 33) * multiplier & _MASK
    v = _weak(data, place, v[1] * multiplier, x + w[0])
    w = _weak(data, place + 32, z + w[1], y + _word(data, place + 16))
    return z, y, x, v, w


def _weak(data: bytes, place: int, a: int, b: int) -> _Pair:
    first, second, third, fourth = (_word(data, place + step) for step in (0, 8, 16, 24))
    a += first
    b = _rotated(b + a + fourth, 21)
    before = a
    a += second + third
    b += _rotated(a, 44)
    return a + fourth & _MASK, b + before & _MASK


def _mix(u: int, v: int, multiplier: int) -> int:
    a = _shifted((u ^ v) * multiplier)
    return _shifted((v ^ a) * multiplier) * multiplier & _MASK


def _shifted(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return value >> bits | value << 64 - bits & _MASK


def _word(data: bytes, place: int) -> int:
    return int(_WORD.unpack_from(data, place)[0])
