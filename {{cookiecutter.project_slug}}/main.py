"""The file that spark-submit runs: ``main.py --config production.toml``."""

import sys

from {{ cookiecutter.__package }}.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
