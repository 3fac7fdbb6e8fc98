"""Predictors of images: the convolutional one, and ResNet-50 with published weights."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from thetafield.errors import DataError, OptionError
from thetafield.options import checked
from thetafield.predictors import PREDICTORS
from thetafield.predictors.resnet import MEAN, SPREAD, ResNet50, load_resnet50
from thetafield.testing import check_predictor

convnet = PREDICTORS["convnet"]


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 32, 32), (2, 8, 17)])
def test_convnet_conforms(shape):
    check_predictor("convnet", input_shape=shape)


def test_convnet_has_the_sizes_of_the_paper():
    assert convnet((3, 28, 28), 10).dim == 576 * 128 + 128 + 128 * 10 + 10 == 75_146
    assert convnet((1, 32, 32), 2, hidden=(128, 32)).dim == 135_394
    shared = convnet((3, 28, 28), 10).backbone.parameters()
    assert sum(p.numel() for p in shared) == (3 * 9 + 1) * 32 + (32 * 9 + 1) * 32 + (32 * 9 + 1) * 64


def test_convnet_takes_bytes_as_shares_of_white(generator):
    images = torch.randint(0, 256, (2, 3, 1, 16, 16), dtype=torch.uint8, generator=generator)
    predictor = convnet((1, 16, 16), 2).eval()
    theta = predictor.start.expand(2, -1)
    answers = predictor(theta, images)
    convolutions = nn.Sequential(*list(predictor.backbone)[1:])
    plain = convolutions(images.flatten(0, 1).float() / 255).unflatten(0, (2, 3))
    torch.testing.assert_close(answers, predictor.head(theta, plain))
    shares = convnet((1, 16, 16), 2, white=1.0).eval()
    shares.backbone.load_state_dict(predictor.backbone.state_dict())
    torch.testing.assert_close(answers, shares(theta, images.float() / 255))


def test_convnet_drops_features_in_training_only():
    predictor = convnet((1, 16, 16), 2, dropout=0.5)
    images = torch.full((1, 4, 1, 16, 16), 200, dtype=torch.uint8)
    dropped = predictor.train().features(images)
    kept = predictor.eval().features(images)
    assert ((dropped == 0) | torch.isclose(dropped, 2 * kept)).all() and not torch.equal(dropped, kept)


@pytest.mark.parametrize("shape", [(6,), (28, 28), (1, 4, 4), (2, 3, 16, 16)])
def test_convnet_says_that_it_needs_images(shape):
    with pytest.raises(OptionError, match=r"convnet needs images of shape .* use predictor 'mlp'") as caught:
        convnet(shape, 2)
    assert str(shape) in str(caught.value)


def test_convnet_refuses_to_drop_everything():
    with pytest.raises(OptionError, match="'dropout' expects a share below 1"):
        convnet((1, 16, 16), 2, **checked(convnet, {"dropout": 1}, "convnet"))


def test_resnet_has_the_names_and_sizes_that_torchvision_publishes():
    network = ResNet50()
    state = network.state_dict()
    last = 2048 * 1000 + 1000
    assert sum(p.numel() for p in network.parameters()) + last == 25_557_032
    assert len(state) == 320 - 2  # the published dictionary has 320 entries, two of them of the last layer
    for name, shape in {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_var": (64,),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer2.3.conv2.weight": (128, 128, 3, 3),
        "layer3.5.bn3.num_batches_tracked": (),
        "layer4.0.downsample.1.running_mean": (2048,),
        "layer4.2.conv3.weight": (2048, 512, 1, 1),
    }.items():
        assert state[name].shape == shape, name
    assert network.layer2[0].conv2.stride == (2, 2) and network.layer2[0].conv1.stride == (1, 1)


def test_resnet_sees_images_as_imagenet_was_seen(generator):
    network = ResNet50(width=2).eval()
    images = torch.randint(0, 256, (2, 3, 40, 40), dtype=torch.uint8, generator=generator)
    seen = []
    network.conv1.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    features = network(images)
    shares = images.double() / 255
    for colour in range(3):
        expected = (shares[:, colour] - MEAN[colour]) / SPREAD[colour]
        torch.testing.assert_close(seen[0][:, colour].double(), expected, rtol=1e-5, atol=1e-5)
    assert features.shape == (2, 64) and not torch.equal(features[0], features[1])


@pytest.mark.parametrize("name", ["resnet50.pth", "resnet50.safetensors"])
def test_weights_are_read_with_or_without_a_last_layer(tmp_path, name):
    network = ResNet50(width=2).eval()
    state = dict(network.state_dict())
    keep = save_file if name.endswith("safetensors") else torch.save
    for extra in ({}, {"fc.weight": torch.zeros(5, 64), "fc.bias": torch.zeros(5)}):
        keep(state | extra, tmp_path / name)
        loaded = load_resnet50(tmp_path / name)
        images = torch.arange(3 * 32 * 32, dtype=torch.float32).view(1, 3, 32, 32) % 256
        assert torch.equal(loaded(images), network(images)) and not loaded.training


@pytest.mark.parametrize("name", ["resnet50.pth", "resnet50.safetensors"])
@pytest.mark.parametrize("content", [b"", b"no weights at all", b"\x80\x02N."], ids=["empty", "text", "pickle"])
def test_a_file_without_weights_is_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="holds no weights of a ResNet-50") as caught:
        load_resnet50(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)


def test_weights_of_another_network_are_named(tmp_path):
    torch.save({"conv1.weight": torch.zeros(2, 3, 7, 7)}, tmp_path / "resnet50.pth")
    with pytest.raises(DataError, match="holds no weights of a ResNet-50"):
        load_resnet50(tmp_path / "resnet50.pth")
