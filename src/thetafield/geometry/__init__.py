"""Geometry of the parameter manifold: exponentials, generators, gate, transports, charts, laws, trust."""
