"""`python -m enginectl`: the same as the `engine` script."""

import sys

from enginectl.main import main

sys.exit(main())
