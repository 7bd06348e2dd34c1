"""``python -m ytstream``: commands that need no job of this runtime."""

import sys

if __name__ == "__main__":
    from .doctor import cli

    sys.exit(cli.main(sys.argv[1:]))
