"""Which method generalises to unseen domains of somebody's own data, by how much, and how sure that is."""

from thetafield.compare.run import compare

__all__ = ["compare"]
