"""An expression of many parts as a tree of few levels.

Spark descends into an expression level by level. A sum of a thousand columns, each added to the sum
before it, has a thousand levels, and ends in a StackOverflowError.
"""

from collections.abc import Callable, Iterable

from pyspark.sql import Column as Expression


def balanced(
    combine: Callable[[Expression, Expression], Expression], parts: Iterable[Expression]
) -> Expression:
    """Combine the parts, in their order: neighbours, then pairs of neighbours, and so on.

    There must be a part, and ``combine`` must be associative.
    """
    level = [*parts]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [*(combine(*pair) for pair in pairs), *level[len(level) // 2 * 2 :]]
    return level[0]
