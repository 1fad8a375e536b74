"""Columns of numbers as the C ABI takes them: a pointer, a stride, a width.

Taken without a copy: numpy arrays and whatever else has `__array_interface__` (of any stride),
`array.array`, ctypes arrays. Other sequences of ints are copied. Values are 4 or 8 bytes wide;
of 8 the low 32 bits are recorded (all of them for digests).
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Union

from ._abi import Column
from .errors import Code, RecordError


class ArrayInterface(Protocol):
    """What numpy arrays, and CPU tensors through .numpy(), offer."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


IntColumn = Union[Sequence[int], "array[int]", ArrayInterface]
FloatBlock = Union[Sequence[float], "array[float]", ArrayInterface]
Held = tuple[Column, int, object]
"""A column, its length, and what must stay alive as long as the column is used."""


def _invalid(name: str, what: str) -> RecordError:
    return RecordError(Code.INVALID, f"column {name}: {what}")


def _from_interface(name: str, values: Any, interface: dict[str, Any]) -> Held:
    shape = interface["shape"]
    kind, width = interface["typestr"][1], int(interface["typestr"][2:])
    if len(shape) != 1:
        raise _invalid(name, f"has {len(shape)} dimensions, must have one")
    if kind not in "iu" or width not in (4, 8) or interface["typestr"][0] == ">":
        raise _invalid(name, f"holds {interface['typestr']}, must hold 4- or 8-byte integers")
    stride = interface.get("strides")
    step = int(stride[0]) if stride else width
    if shape[0] == 0:
        return _copied(name, ())
    if step == 0 or not -(2**31) <= step < 2**31:
        return _copied(name, [int(value) for value in values])
    return Column(int(interface["data"][0]), step, width), int(shape[0]), values


def _from_array(name: str, values: array[int]) -> Held:
    if values.typecode in "fdu" or values.itemsize not in (4, 8):
        raise _invalid(name, f"is an array('{values.typecode}'), must hold 4- or 8-byte integers")
    address, length = values.buffer_info()
    return Column(address, values.itemsize, values.itemsize), length, values


def _copied(name: str, values: Sequence[int]) -> Held:
    try:
        held = array("q", values or (0,))
    except (TypeError, OverflowError) as error:
        raise _invalid(name, f"holds something else than integers: {error}") from error
    return Column(held.buffer_info()[0], 8, 8), len(values), held


def column(name: str, values: IntColumn) -> Held:
    """The column of `values`; `name` is for the message of an error.

    Raises:
        RecordError: INVALID when they are not one dimension of 4- or 8-byte integers.
    """
    if isinstance(values, array):
        if len(values) == 0:
            return _copied(name, ())
        return _from_array(name, values)
    interface = getattr(values, "__array_interface__", None)
    if interface is not None:
        return _from_interface(name, values, interface)
    if isinstance(values, ctypes.Array):
        width = ctypes.sizeof(values._type_)
        if width not in (4, 8) or issubclass(values._type_, (ctypes.c_float, ctypes.c_double)):
            raise _invalid(name, "must hold 4- or 8-byte integers")
        if len(values) == 0:
            return _copied(name, ())
        return Column(ctypes.addressof(values), width, width), len(values), values
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        return _copied(name, values)
    raise _invalid(name, f"is a {type(values).__name__}; for a tensor pass .numpy() of a CPU copy")


def iterated(values: Any) -> Iterable[int]:
    """The values one by one, for a copy."""
    return (int(value) for value in values)


def flags(name: str, values: Sequence[bool] | bytes | bytearray, length: int) -> bytes:
    """One byte a row, 0: no, `length` of them."""
    held = bytes(values) if isinstance(values, (bytes, bytearray)) else bytes(map(bool, values))
    if len(held) != length:
        raise _invalid(name, f"has {len(held)} values where the others have {length}")
    return held


def block(name: str, values: Any, length: int, typecode: str) -> tuple[int, object]:
    """Address of `length` 4-byte values of `typecode` ('f' or 'i'), row by row, and what to hold.

    Contiguous numpy arrays of the right type and `array.array` are taken without a copy.
    """
    interface = getattr(values, "__array_interface__", None)
    if interface is not None:
        count = 1
        for extent in interface["shape"]:
            count *= int(extent)
        if interface["typestr"][1:] != f"{typecode}4" or interface.get("strides"):
            raise _invalid(name, f"must be a contiguous array of {typecode}4")
        if count != length:
            raise _invalid(name, f"has {count} values, must have {length}")
        return int(interface["data"][0]), values
    held = values if isinstance(values, array) and values.typecode == typecode else None
    if held is None:
        try:
            held = array(typecode, values)
        except (TypeError, OverflowError) as error:
            raise _invalid(name, str(error)) from error
    if len(held) != length:
        raise _invalid(name, f"has {len(held)} values, must have {length}")
    return held.buffer_info()[0], held
