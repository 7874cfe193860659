"""``python -m bijotel``: the same as the command ``bijotel``."""

import sys

from bijotel.cli import main

if __name__ == "__main__":
    sys.exit(main())
