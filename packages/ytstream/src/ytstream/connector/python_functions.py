"""Python functions in a plan, made safe: no value is rounded or lost on its way in or out.

PySpark makes the expression of each function in one place (UserDefinedFunction._create_judf): for
udf, pandas_udf, mapInPandas, applyInPandas, applyInPandasWithState. Python workers get a function
of a function whole, so they need nothing of this runtime.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StructType,
    _acceptable_types,
)
from pyspark.sql.udf import UserDefinedFunction

from ..errors import JobError
from ..errors.error_codes import ErrorCode

Function = Callable[..., Any]

_PICKLED, _IN_ARROW = 100, 101
"""Functions of single values, which are pickled or come in Arrow's batches (Spark, PythonEvalType).
"""
_make_expression = UserDefinedFunction._create_judf


def make_safe(spark_version: str) -> None:
    """Let each Python function that this process gives to Spark be a safe one.

    Spark 4.2 hands integers over as such by a setting (job_rules.toml).
    """
    spark = tuple(map(int, spark_version.split(".")[:2]))
    is_rounding = spark < (4, 2)

    def create(udf: UserDefinedFunction, function: Function) -> Any:
        if udf.evalType == _IN_ARROW and spark < (4, 0) and isinstance(udf.returnType, LongType):
            # It makes a pandas series of the results (worker.py, wrap_arrow_batch_udf).
            raise JobError(
                f"{udf._name}(): udf(useArrow=True) of Spark {spark_version} rounds large integers "
                "next to a null",
                "leave useArrow out",
                code=ErrorCode.PLAN,
            )
        if udf.evalType == _PICKLED:
            function = _verified(function, udf._name, udf.returnType)
        elif is_rounding:
            function = _given_integers(function)
        return _make_expression(udf, function)

    cast("Any", UserDefinedFunction)._create_judf = create


def _verified(function: Function, name: str, kind: DataType) -> Function:
    """Return the function, which raises TypeError for a result that is not of its declared type.

    Spark stores null for a value of another type, an integer for a double among them, and another
    number for one that is too large (EvaluatePython.makeFromJava).
    """
    if not _is_known(kind):
        return function
    verifiers: list[Callable[[Any], None]] = []  # made once for each task
    declared = kind.simpleString()

    def run(*arguments: Any, **named: Any) -> Any:
        value = function(*arguments, **named)
        if value is None:
            return None
        if not verifiers:
            from pyspark.sql.types import _make_type_verifier

            verifiers.append(_make_type_verifier(kind))
        try:
            verifiers[0](value)
        except Exception as error:
            raise TypeError(
                f"{name}() is declared {declared} and has returned {value!r} of type "
                f"{type(value).__name__}: Spark would store null or another value ({error})"
            ) from None
        return value

    return _like(function, run)


def _is_known(kind: DataType) -> bool:
    """Return whether PySpark can verify values of a type: it cannot for types of SPYT's."""
    if isinstance(kind, StructType):
        return all(_is_known(field.dataType) for field in kind)
    if isinstance(kind, MapType):
        return _is_known(kind.keyType) and _is_known(kind.valueType)
    if isinstance(kind, ArrayType):
        return _is_known(kind.elementType)
    return type(kind) in _acceptable_types


def _given_integers(function: Function) -> Function:
    """Return the function of pandas objects, to which no integer comes as a float.

    PySpark hands a column with integers and nulls over as floats, which have 53 bits (SPARK-54962):
    1234567890123456789 becomes 1234567890123456768. The worker unpickles the function before its
    first rows, and with it the conversion.
    """
    installed = _Installed()

    def run(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named) if installed else None

    return _like(function, run)


class _Installed:
    """Something that installs the conversion in the process that unpickles it."""

    def __reduce__(self) -> Any:
        return _installer(), ()


def _installer() -> Function:
    """Return a function for Python workers: it needs nothing of this runtime there."""

    def install() -> bool:
        import pandas as pd
        import pyarrow as pa
        from pyspark.sql.pandas.serializers import ArrowStreamPandasSerializer

        serializer = cast("Any", ArrowStreamPandasSerializer)
        original = serializer.arrow_to_pandas
        if getattr(original, "gives_integers", False):  # workers are used for several tasks
            return True

        class Exact:
            """A column in whose lists and maps integers stay what they are."""

            def __init__(self, column: Any) -> None:
                self.column = column

            def __getattr__(self, name: str) -> Any:
                return getattr(self.column, name)

            def to_pandas(self, **options: Any) -> Any:
                return self.column.to_pandas(**options, integer_object_nulls=True)

        def arrow_to_pandas(self: Any, column: Any, *arguments: Any, **named: Any) -> Any:
            if not pa.types.is_int64(column.type):
                nested = pa.types.is_nested(column.type)
                return original(self, Exact(column) if nested else column, *arguments, **named)
            if not column.null_count:
                return original(self, column, *arguments, **named)
            # A function with Arrow's values one by one knows None, and not pandas' NA.
            if getattr(self, "_ndarray_as_list", False):
                return column.to_pandas(integer_object_nulls=True)
            return column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)

        arrow_to_pandas.gives_integers = True  # type: ignore[attr-defined]
        serializer.arrow_to_pandas = arrow_to_pandas
        return True

    return install


def _like(function: Function, made: Function) -> Function:
    """Give a function the name and the parameters of another one: Spark looks at both."""
    made.__name__ = getattr(function, "__name__", type(function).__name__)
    made.__doc__ = getattr(function, "__doc__", None)
    with suppress(TypeError, ValueError):  # of a function in C
        made.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return made
