"""The shapes of the theory, named once.

N domains, b domains in a batch, n samples per domain, d descriptor dim, D head parameters, m latent dim,
r generators, k neighbours, E edges, o outputs, f features. Checked at run time in the tests only.
"""

from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

Descriptors = Float[Tensor, "b d"]
Anchors = Float[Tensor, "N d"]
Targets = Float[Tensor, "b k d"]
Latents = Float[Tensor, "b m"]
TransportedLatents = Float[Tensor, "b k m"]
Generators = Float[Tensor, "b r m m"]
Coefficients = Float[Tensor, "b k r"]
Times = Float[Tensor, "b k"]
Thetas = Float[Tensor, "b D"]
Theta = Float[Tensor, " D"]
Shifts = Float[Tensor, "b w"]
Risks = Float[Tensor, " b"]
Outputs = Float[Tensor, "b n o"]
Inputs = Num[Tensor, "b n *x"]
Samples = Num[Tensor, "n *x"]
SampleOutputs = Float[Tensor, "n o"]
Features = Float[Tensor, "b n *f"]
Embedded = Float[Tensor, "b n h"]
Indices = Int[Tensor, " b"]
Neighbours = Int[Tensor, "N k"]
Edges = Int[Tensor, "2 E"]
Mask = Bool[Tensor, "b n"]
