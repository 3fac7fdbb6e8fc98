"""Every way of finding neighbours finds the same ones, for few points and for very many."""

import pytest
import torch

from thetafield.geometry import neighbours
from thetafield.geometry.atlas import knn_charts
from thetafield.geometry.neighbours import Distinct, by_distance, by_product, by_tree, nearest
from thetafield.geometry.trust import Trust


def points(kind, count, width, generator):
    z = torch.rand(count, width, generator=generator)
    if kind == "duplicates":
        z = z[torch.randint(count // 4, (count,), generator=generator)]
    if kind == "grid":  # many places equally far, and some places twice
        z = (3 * z).round() / 4
    if kind == "far":  # close points far from the origin: a matrix product alone has no digits left for them
        z = 1000 + z / 100
    return z


@pytest.mark.parametrize("way", [by_tree, by_product])
@pytest.mark.parametrize("kind", ["random", "duplicates", "grid", "far"])
@pytest.mark.parametrize("width", [1, 2, 5, 13, 40])
def test_all_ways_agree(way, kind, width, generator):
    query, anchors = points(kind, 200, width, generator), points(kind, 300, width, generator)
    distance = torch.cdist(query.double(), anchors.double(), compute_mode=neighbours.EXACT)
    for count in (1, 2, 7):
        index = way(query, anchors, count)
        assert index.shape == (200, count)
        assert all(len(set(row)) == count for row in index.tolist())
        # The same distances, neighbour by neighbour: the indices are the same but for what is equally near in single.
        expected = distance.topk(count, largest=False).values
        torch.testing.assert_close(distance.gather(1, index), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("way", [by_distance, by_tree, by_product])
def test_ties_go_to_the_lowest_index(way):
    corners = torch.cartesian_prod(torch.arange(2.0), torch.arange(2.0)).repeat(20, 1)
    assert way(torch.full((3, 2), 0.5), corners, 1).tolist() == [[0]] * 3
    assert way(torch.tensor([[0.9, 0.5]]), corners, 1).tolist() == [[2]]


def test_a_tree_ranks_ties_by_index_however_many_there_are(generator):
    """Forty places on a circle, each twice in shuffled order, are equally near to its centre."""
    turn = torch.arange(40) * torch.pi / 20
    circle = torch.stack([turn.cos(), turn.sin()], 1).double()
    circle = (circle / circle.norm(dim=1, keepdim=True)).repeat(2, 1)[torch.randperm(80, generator=generator)]
    distance = torch.cdist(torch.zeros(1, 2).double(), circle, compute_mode=neighbours.EXACT)[0]
    expected = sorted(range(80), key=lambda i: (float(distance[i]), i))
    for count in (1, 3, 50, 80):
        assert by_tree(torch.zeros(1, 2).double(), circle, count)[0].tolist() == expected[:count]


def test_the_way_is_chosen_by_number_and_width(monkeypatch, generator):
    monkeypatch.setattr(neighbours, "REPAYS", {"cpu": 50})
    monkeypatch.setattr(neighbours, "PAIRS", 10_000)

    def way(num_queries, num_anchors, width):
        return neighbours._way(torch.empty(num_queries, width), torch.empty(num_anchors, width), 1)

    assert way(80, 80, 2) is by_distance
    assert way(200, 200, 2) is by_tree
    assert way(10, 10**6, 2) is way(10**6, 10, 2) is by_distance  # a tree that is asked ten times, and one of ten
    assert way(200, 200, 0) is by_distance
    assert way(200, 200, 64) is by_product
    assert way(80, 80, 64) is way(10**6, 5, 64) is by_distance
    for width in (0, 2, 64):
        query, anchors = (torch.rand(200, width, dtype=torch.float64, generator=generator) for _ in range(2))
        distance, index = nearest(query, anchors, 4)
        expected = torch.cdist(query, anchors, compute_mode=neighbours.EXACT).topk(4, largest=False)
        assert torch.equal(distance, expected.values)
        assert torch.equal(index, expected.indices)


@pytest.mark.parametrize("way", [by_distance, by_tree, by_product])
def test_pieces_make_no_difference(way, generator, monkeypatch):
    query, anchors = torch.rand(50, 2, generator=generator), torch.rand(20, 2, generator=generator)
    whole = way(query, anchors, 3)
    monkeypatch.setattr(neighbours, "CELLS", 60)
    assert torch.equal(way(query, anchors, 3), whole)


@pytest.mark.parametrize("width", [2, 64])
@pytest.mark.parametrize("many", [False, True])
def test_distances_have_gradients_whichever_the_way(many, width, generator, monkeypatch):
    monkeypatch.setattr(neighbours, "REPAYS", {"cpu": 1 if many else 10**9})
    monkeypatch.setattr(neighbours, "PAIRS", 1 if many else 10**9)
    query, anchors = (torch.rand(30, width, dtype=torch.float64, generator=generator) for _ in range(2))
    query.requires_grad_()
    distance, index = nearest(query, anchors, 2)
    distance.sum().backward()
    apart = (query - anchors[index[:, 0]], query - anchors[index[:, 1]])
    torch.testing.assert_close(query.grad, sum(a / a.norm(dim=1, keepdim=True) for a in apart))


def test_what_is_nowhere_is_far_from_everything(generator):
    query = torch.rand(3000, 2, generator=generator)
    query[7], query[8, 1], query[9] = torch.inf, torch.nan, 1e18
    distance, index = nearest(query, query[10:], 1)
    assert index.max() < 2990
    assert (~(distance[:, 0] < 2)).nonzero().flatten().tolist() == [7, 8, 9]


def test_distinct_rows_are_those_of_unique(generator):
    rows = torch.randint(-2, 3, (500, 3), generator=generator).float()
    rows[rows == 0] *= -1  # a negative zero is a zero
    distinct = Distinct.of(rows)
    unique, group, sizes = torch.unique(rows + 0.0, dim=0, return_inverse=True, return_counts=True)
    assert torch.equal(distinct.points, unique)
    assert torch.equal(distinct.group, group)
    assert torch.equal(distinct.sizes, sizes)
    assert torch.equal(distinct.members, torch.argsort(group, stable=True))
    assert torch.equal(distinct.starts, sizes.cumsum(0) - sizes)
    assert len(Distinct.of(rows[:0]).points) == 0


def test_charts_of_two_hundred_thousand_points(generator):
    """Against all distances, for a sample of anchors; every twentieth descriptor is shared by two domains."""
    z = torch.rand(200_000, 2, generator=generator)
    z[:10_000] = z[100_000:110_000]
    charts = knn_charts(z, 5).neighbours
    assert torch.equal(charts[:, 0], torch.arange(len(z)))
    sample = torch.cat([torch.arange(100), torch.randint(len(z), (100,), generator=generator)])
    distance = torch.cdist(z[sample].double(), z.double(), compute_mode=neighbours.EXACT)
    for row, apart in zip(charts[sample], distance, strict=True):
        expected = torch.unique(apart.topk(20, largest=False).values)[:6]  # of different descriptors
        torch.testing.assert_close(apart[row], expected, rtol=0, atol=1e-9)
    trust = Trust.fit(z)
    assert 0.5 < trust.reach * len(z) ** 0.5 < 1.5
    assert torch.equal(trust(z), torch.ones(len(z)))
