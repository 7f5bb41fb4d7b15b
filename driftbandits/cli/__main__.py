"""`python -m driftbandits.cli` is the command line."""

from driftbandits.cli.main import main

main()
