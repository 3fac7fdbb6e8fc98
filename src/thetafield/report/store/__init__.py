"""Reports of a store: tables, figures and pages as pure functions of what stored trials left behind.

Tables and documents need nothing beyond the core; figures and pages need the extra `thetafield[report]`.
"""
