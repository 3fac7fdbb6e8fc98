"""`python -m thetafield` is the same program as `thetafield`."""

from thetafield.cli import main

main()
