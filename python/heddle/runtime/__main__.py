"""`python -m heddle.runtime`: a worker, started by `heddle serve`."""

from heddle.runtime.worker import main

main()
