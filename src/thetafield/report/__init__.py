"""What people look at: the catalogue, progress on the terminal, figures and pages made from stored results.

Figures and pages need the extra `thetafield[report]` (matplotlib, jinja2); the rest of this package does not, so
nothing heavy is imported here.
"""
