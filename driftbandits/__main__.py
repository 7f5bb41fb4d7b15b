"""`python -m driftbandits` is the command line."""

from driftbandits.cli.main import main

main()
