"""`python -m heddle.runtime`: a worker, started by `heddle serve`."""

import sys

from heddle.runtime.worker import main

sys.exit(main())
