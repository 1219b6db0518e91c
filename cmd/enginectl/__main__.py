"""`python -m enginectl`: the same as the `engine` script."""

import sys

from enginectl.entry import main

sys.exit(main())
