"""ResNet-50 as a feature extractor, in torchvision's names, so that published weights fit.

Not a predictor of its own: datasets of large images run it once over their images and keep the features.
"""

from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from thetafield.errors import DataError

MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's red, green and blue
DEPTHS = (3, 4, 6, 3)
EXPANSION = 4
DAMAGES = (SafetensorError, UnpicklingError, RuntimeError, OSError, EOFError, LookupError, TypeError, AttributeError)


class Bottleneck(nn.Module):
    """x + f(x), with f a 1 × 1, a 3 × 3 (which strides) and a 1 × 1 convolution, each with batch normalisation.

    Args:
        before: Channels of the input.
        width: Channels of the 3 × 3 convolution; the output has four times as many.
        stride: Stride.
    """

    def __init__(self, before: int, width: int, stride: int = 1) -> None:
        super().__init__()
        after = EXPANSION * width
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, after, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            if stride != 1 or before != after
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(x + f(x))."""
        same = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + same)


class ResNet50(nn.Module):
    """ResNet-50 up to its pooled features, without the last layer: images in bytes to vectors of 32 × `width`.

    Args:
        width: Channels of the first convolution; 64 in the published network, with 2,048 features.

    Reference: He et al., Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the 3 × 3
    convolution as in torchvision.

    Example:
        >>> ResNet50(width=2).eval()(torch.zeros(5, 3, 32, 32, dtype=torch.uint8)).shape
        torch.Size([5, 64])
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(SPREAD).view(3, 1, 1), persistent=False)
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        before = width
        for stage, depth in enumerate(DEPTHS):
            blocks = []
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(before, width * 2**stage, stride))
                before = EXPANSION * width * 2**stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, 32 · width) of images (n, 3, height, width) with values in [0, 255]."""
        x = (images / 255 - self.mean) / self.spread
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(len(DEPTHS)):
            x = getattr(self, f"layer{stage + 1}")(x)
        return x.mean((2, 3))


def load_resnet50(path: Path) -> ResNet50:
    """Return the network with the weights of a safetensors file or of a state dictionary of torch, ready to extract.

    The width is read from the weights; a last layer (fc) among them is left out. Nothing but tensors is unpickled.

    Raises:
        DataError: The file holds no weights of a ResNet-50.
    """
    try:
        safe = path.suffix == ".safetensors"
        state = load_file(path) if safe else torch.load(path, map_location="cpu", weights_only=True)
        state = {name: weight for name, weight in state.items() if not name.startswith("fc.")}
        network = ResNet50(width=len(state["conv1.weight"]))
        network.load_state_dict(state)
    except (
        SafetensorError,
        UnpicklingError,
        RuntimeError,
        OSError,
        EOFError,
        KeyError,
        TypeError,
        AttributeError,
    ) as e:
        finding = " ".join(str(e).split())[:200] or type(e).__name__
        raise DataError(
            f"{path} holds no weights of a ResNet-50 ({finding.rstrip('.')}): get torchvision's resnet50 weights again."
        ) from None
    return network.eval().requires_grad_(False)
