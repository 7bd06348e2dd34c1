"""Say what is wrong with the words of `make demo`: ``python -m tools.demo_words GUARANTEE=...``."""

from __future__ import annotations

import sys

from local_extensions import answers


def main(words: list[str]) -> str:
    """Return what is wrong; "" if the template offers these values and the pair."""
    offered = answers.offered()
    asked = {name.lower(): value for name, _, value in (word.partition("=") for word in words)}
    wrong = [
        f"{name.upper()}={value}: give one of {','.join(offered[name])}"
        for name, value in asked.items()
        if value and value not in offered[name]
    ]
    chosen = {name: asked.get(name) or offered[name][0] for name in ("guarantee", "processing")}
    why = answers.pair_problem(**chosen)
    return "\n".join(wrong) or (why and f"{why}\n  -> give GUARANTEE=transactional")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) or 0)
