"""`python -m envcheck`."""

import sys

from envcheck.cli import main

if __name__ == "__main__":
    sys.exit(main())
