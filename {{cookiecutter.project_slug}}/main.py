"""What spark-submit runs: ``main.py --config production.toml``."""

import sys
from importlib import import_module

if __name__ == "__main__":
    job = import_module("{{ cookiecutter.__package }}.__main__")
    sys.exit(job.main(["run", *sys.argv[1:]]))
