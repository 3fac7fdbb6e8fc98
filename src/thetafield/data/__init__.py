"""Domains: data sets with a descriptor, stored flat."""

from thetafield.data.descriptors import DescriptorScaler
from thetafield.data.domains import DomainBatch, DomainSet

__all__ = ["DescriptorScaler", "DomainBatch", "DomainSet"]
