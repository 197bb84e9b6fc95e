"""`python -m envcheck`."""

import os
import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # Python puts the working folder first: a torch.py or json.py there is not what is meant.
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    if sys.path and sys.path[0] != home:
        del sys.path[0]

from envcheck.cli import main

if __name__ == "__main__":
    sys.exit(main())
