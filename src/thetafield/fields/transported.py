"""The transported field: parameters carried from the nearest training domain by a learned transport."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.errors import OptionError, closest
from thetafield.fields.base import ParameterField
from thetafield.geometry.coder import WIDTHS, Coder
from thetafield.geometry.laws import ParameterTransport
from thetafield.geometry.neighbours import nearest
from thetafield.geometry.transport import LieTransport, LinearTransport, PlainTransport, Transport

CHUNK = 8192  # descriptors carried at once: bounds the memory of their generators


class TransportedField(ParameterField):
    """θ(z) = decode(T(encode(θ_i), z_i, z)) with z_i the nearest training descriptor.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        num_anchors: N.
        latent_dim: m.
        widths: Hidden widths of the coder.
        transport: "lie", "plain" or "linear".
        gate: Whether a gate modulates the descriptors.
        num_generators: r; None takes one per descriptor coordinate. Read by the Lie transport only.
        hidden: Width of the field network.
        generators: "field", "constant" or "commuting". Read by the Lie transport only.
    """

    kind = "transported"
    anchors: Tensor

    def __init__(
        self,
        descriptor_dim: int,
        theta_dim: int,
        num_anchors: int,
        latent_dim: int = 32,
        widths: Sequence[int] = WIDTHS,
        transport: str = "lie",
        gate: bool = True,
        num_generators: int | None = None,
        hidden: int = 128,
        generators: str = "field",
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self._config = {
            "descriptor_dim": descriptor_dim,
            "theta_dim": theta_dim,
            "num_anchors": num_anchors,
            "latent_dim": latent_dim,
            "widths": list(widths),
            "transport": transport,
            "gate": gate,
            "num_generators": num_generators,
            "hidden": hidden,
            "generators": generators,
        }
        self.theta = nn.Parameter(torch.zeros(num_anchors, theta_dim))
        self.register_buffer("anchors", torch.zeros(num_anchors, descriptor_dim))
        self.coder = Coder(theta_dim, latent_dim, tuple(widths))
        kinds: dict[str, Callable[[], Transport]] = {
            "lie": lambda: LieTransport(
                descriptor_dim,
                latent_dim,
                gate=gate,
                num_generators=num_generators,
                hidden=hidden,
                generators=generators,
            ),
            "plain": lambda: PlainTransport(descriptor_dim, latent_dim, gate=gate, hidden=hidden),
            "linear": lambda: LinearTransport(descriptor_dim, latent_dim, gate=gate, hidden=hidden),
        }
        if transport not in kinds:
            raise OptionError(f"There is no transport {transport!r}; {closest(transport, kinds)}")
        self.transport = kinds[transport]()

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return dict(self._config)

    @property
    def operator(self) -> ParameterTransport:
        """The transport at θ level, for the laws."""
        return ParameterTransport(self.coder, self.transport)

    def thetas(self, z: Tensor) -> Tensor:
        """Carry the nearest anchor's latent to each descriptor and decode it."""
        pieces = []
        for part in z.split(CHUNK):
            _, index = nearest(part, self.anchors)
            used, anchor = torch.unique(index[:, 0], return_inverse=True)
            latents = self.coder.encode(self.theta[used])
            latent = self.transport(latents[anchor], self.anchors[used[anchor]], part[:, None])[:, 0]
            pieces.append(self.coder.decode(latent))
        return torch.cat(pieces) if pieces else z.new_zeros(0, self.theta_dim)
