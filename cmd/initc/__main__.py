"""`python -m initc`: the same as the `grove-initc` script."""

import sys

from initc.main import main

sys.exit(main())
