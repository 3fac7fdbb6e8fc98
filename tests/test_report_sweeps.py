"""Sweeps: one thing is varied at a time, and imperfect descriptors are shown as the dataset makes them."""

import numpy as np
import pytest

from thetafield.datasets.two_moons import MESH, two_moons
from thetafield.report.figures.curves import LINE_COLOURS, Curve, CurvePanel, curve_panels, line_looks
from thetafield.report.store.domain_pictures import contests
from thetafield.report.store.imperfection_picture import constructions
from thetafield.report.store.sections import Wanted, sections
from thetafield.report.store.sweeps import (
    convergence_panels,
    imperfection_panels,
    scaling_panels,
    sensitivity_panels,
    sweep_table,
)


def test_imperfections_are_told_apart(builder):
    for level in range(3):
        builder.trial(
            "imperfection", "two-moons", "neurallio", 0, [level], dataset_options={"noise_coordinates": level}
        )
        builder.trial(
            "imperfection", "two-moons", "neurallio", 0, [10 + level], dataset_options={"dropped_coordinates": level}
        )
    results = builder.read().of("imperfection")
    noise, redundancy, dropped = imperfection_panels(results)
    [line] = noise.lines.values()
    assert [(point.x, noise.cell(point).value) for point in line] == [(0, 0), (1, 1), (2, 2)]
    # Dropping none of eight projections is not the same as true coordinates.
    assert [dropped.cell(point).value for point in next(iter(dropped.lines.values()))] == [10, 11, 12]
    assert [point.x for point in next(iter(redundancy.lines.values()))] == [0]
    table = sweep_table(noise, results, "Noise")
    assert [column.title for column in table.columns] == ["0", "1", "2"] and table.name == "imperfection-noise"


def test_sensitivity_varies_one_option_at_a_time(builder):
    for value in (8, 32, 64):
        builder.trial("sensitivity", "two-moons", "neurallio-paper", 0, [value], options={"latent_dim": value})
    for value in (3, 5, 7):
        builder.trial("sensitivity", "two-moons", "neurallio-paper", 0, [100 + value], options={"neighbours": value})
    panels = {panel.name: panel for panel in sensitivity_panels(builder.read().of("sensitivity"))}
    [latent], [charts] = panels["latent-dim"].lines.items(), panels["neighbours"].lines.items()
    assert latent[0] == charts[0] == "NeuralLio (paper)"
    assert [point.x for point in latent[1]] == [8, 32, 64] and [point.x for point in charts[1]] == [3, 5, 7]
    # k = 5 and a latent of 32 are the defaults: asked for twice, one seed counts once.
    assert all(len(point.place.trials) == 1 for points in (latent[1], charts[1]) for point in points)


def test_a_point_with_fewer_repetitions_says_so(builder):
    for seed in range(3):
        builder.trial("sensitivity", "two-moons", "neurallio", seed, [1.0 + seed], options={"hidden": 16})
    builder.trial("sensitivity", "two-moons", "neurallio", 0, [5.0], options={"hidden": 32})
    builder.failure("sensitivity", "two-moons", "neurallio", 1, "It broke.", options={"hidden": 32})
    results = builder.read().of("sensitivity")
    [panel] = [panel for panel in sensitivity_panels(results) if panel.name == "hidden"]
    table = sweep_table(panel, results, "")
    whole, part = table.rows[0].cells
    assert (whole.notes, [table.notes[note] for note in part.notes]) == (
        (),
        ["1 of 2 repetitions; seed 1 failed: It broke."],
    )


def test_an_option_that_is_left_open_is_not_guessed(builder):
    # None takes one generator per coordinate that the transport sees, which may be more than descriptors have.
    for value in (1, 2):
        builder.trial("sensitivity", "two-moons", "neurallio", 0, [100 + value], options={"num_generators": value})
    for value in (16, 128, 512):
        builder.trial("sensitivity", "two-moons", "neurallio", 0, [value], options={"hidden": value})
    panels = {panel.name: panel for panel in sensitivity_panels(builder.read().of("sensitivity"))}
    [[generators], [hidden]] = panels["num-generators"].lines.values(), panels["hidden"].lines.values()
    cell = panels["hidden"].cell
    assert [(point.x, cell(point).value) for point in generators] == [(1, 101), (2, 102)]
    assert [(point.x, cell(point).value) for point in hidden] == [(16, 16), (128, 128), (512, 512)]


def test_convergence_has_two_sweeps(builder):
    for count in (10, 20, 50):
        builder.trial("convergence", "two-moons", "neurallio", 0, [count], dataset_options={"num_train": count})
    for epochs in (100, 600):
        builder.trial("convergence", "two-moons", "neurallio", 0, [1000 + epochs], options={"epochs": epochs})
    domains, epochs = convergence_panels(builder.read().of("convergence"))
    assert [point.x for point in domains.lines["NeuralLio"]] == [10, 20, 50]
    assert [point.x for point in epochs.lines["NeuralLio"]] == [100, 600]


def test_growth_is_over_domains_and_over_parameters(builder):
    for count in (10, 100):
        extra = {"train_seconds": float(count)}
        builder.trial("scaling", "two-moons", "neurallio", 0, [1.0], dataset_options={"num_train": count}, extra=extra)
        size = {"parameters": 1000 * count}
        builder.trial("scaling", "two-moons-wide", "neurallio", 0, [1.0], dataset_options=size, extra=extra)
    panels = scaling_panels(builder.read().of("scaling"))
    read = {p.name: [(x.x, p.cell(x).value) for x in p.lines["NeuralLio"]] for p in panels}
    assert read == {"domains": [(10, 10), (100, 100)], "parameters": [(10000, 10), (100000, 100)]}
    slow = {"train_seconds": 90.0}  # the first training of a process compiles its kernels
    builder.trial("scaling", "two-moons", "neurallio", 1, [1.0], dataset_options={"num_train": 10}, extra=slow)
    table = sections(builder.read(), Wanted(figures=False))[0].tables[0]
    assert table.rows[0].cells[0].text == "10.0" and "the least over seeds" in table.about


def test_times_of_several_machines_are_no_line_and_no_mean(builder):
    """Where most trials ran goes without saying; the others are lines of their own."""
    for seed, count, device in (
        (0, 10, "a GPU"),
        (0, 100, "a GPU"),
        (1, 100, "a CPU"),
        (0, 1000, "a CPU"),
        (1, 10, "a GPU"),
    ):
        extra = {"train_seconds": count / 10 if device == "a GPU" else 5.0 * count, "device": device}
        builder.trial(
            "scaling", "two-moons", "neurallio", seed, [1.0], dataset_options={"num_train": count}, extra=extra
        )
        builder.trial("runtime", "two-moons-time", "erm", 10 * seed + count, [1.0], extra=extra)
    domains, _ = scaling_panels(builder.read().of("scaling"))
    read = {label: [(p.x, domains.cell(p).value) for p in points] for label, points in domains.lines.items()}
    assert read == {"NeuralLio": [(10, 1), (100, 10)], "NeuralLio, on a CPU": [(100, 500), (1000, 5000)]}
    growth, times = sections(builder.read(), Wanted(figures=False))
    assert growth.tables[0].about.endswith("the least over seeds, on a GPU and a CPU.")
    shown = {row.title: (row.cells[1].value, row.cells[1].mark) for row in times.tables[0].rows}
    assert shown == {"ERM": (1.0, ""), "ERM, on a CPU": (500.0, "")}


def test_scaling_without_sizes_says_so(builder):
    builder.trial("scaling", "two-moons", "neurallio", 0, [1.0], dataset_options={"num_train": 10})
    [part] = sections(builder.read(), Wanted(figures=True))[:1]
    assert part.pictures[0].draw is None and "size" in part.pictures[0].reason


@pytest.mark.parametrize("seed", [0, 3])
def test_imperfect_descriptors_are_shown_as_the_dataset_makes_them(seed):
    noisy, redundant, incomplete = constructions((5, 4, 7), seed)
    assert [one.label for one in noisy.coordinates] == ["scale", "rotation", *["noise"] * 5]
    true = np.stack([one.values for one in noisy.coordinates[:2]], -1)
    assert (np.diff(true[..., 0], axis=0) > 0).all() and (np.diff(true[..., 1], axis=1) > 0).all()
    drawn = np.stack([one.values for one in noisy.coordinates[2:]], -1).reshape(-1, 5)
    assert abs(np.corrcoef(np.concatenate([true.reshape(-1, 2), drawn], 1).T) - np.eye(7)).max() < 0.2
    stored = two_moons(seed, num_train=2, num_test=1, redundant_coordinates=4).test["mesh"].z.numpy()
    shown = np.stack([one.values for one in redundant.coordinates], -1)
    np.testing.assert_allclose(shown, stored.reshape(MESH, MESH, 6), rtol=1e-5, atol=1e-4)
    assert [one.label for one in incomplete.coordinates] == [*(f"goes at {k}" for k in range(1, 8)), "stays"]
    for dropped in (0, 3, 7):
        left = two_moons(seed, num_train=2, num_test=1, dropped_coordinates=dropped).test["mesh"].z.numpy()
        shown = np.stack([one.values.ravel() for one in incomplete.coordinates[dropped:]], -1)
        # The same ones, in the order in which they go.
        np.testing.assert_allclose(np.sort(shown, 1), np.sort(left, 1), rtol=1e-5, atol=1e-4)


def test_the_constructions_stand_above_the_curves(builder):
    for option, levels in (("noise_coordinates", (0, 2)), ("dropped_coordinates", (0, 3))):
        for level in levels:
            given = {"dataset_options": {option: level}}
            builder.trial("imperfection", "two-moons", "neurallio", 1, [5.0 + 10 * level], **given)
    part, *_ = sections(builder.read().of("imperfection"), Wanted())
    [picture] = part.pictures
    assert "for seed 1" in picture.caption
    upper, lower = picture.draw().subfigs
    pictures = [ax for ax in upper.axes if ax.images]
    assert [ax.get_title() for ax in upper.axes if not ax.images] == [
        "2 coordinates of noise added",
        "No projection added",
        "3 of 8 projections dropped",
    ]
    assert len(pictures) == 4 + 2 + 8
    assert [ax.get_title() for ax in lower.axes] == ["Noise", "Redundancy", "Incompleteness"]
    assert {ax.get_yscale() for ax in lower.axes if ax.lines} == {"log"}


def test_panels_of_one_scale_hold_all_curves():
    panels = [
        CurvePanel(name, "", (Curve("a", (0.0, 1.0), (1.0, top), (0.0, 1.0)),))
        for name, top in (("low", 2.0), ("high", 9.0))
    ]
    figure = curve_panels(panels, "error", shared=True)
    assert all(ax.get_ylim()[0] == 0 and ax.get_ylim()[1] >= 10 for ax in figure.axes)


def test_losses_stand_at_their_epochs(builder):
    history = [{"phase": "joint", "epoch": epoch, "loss": 1 / epoch} for epoch in (1, 301, 600)]
    for count in (10, 30):
        given = {"dataset_options": {"num_train": count}, "history": history}
        builder.trial("convergence", "two-moons", "neurallio", 0, [1.0], **given)
    part, *_ = sections(builder.read().of("convergence"), Wanted())
    _, losses, _ = part.pictures[0].draw().axes
    assert [list(line.get_xdata()) for line in losses.lines] == [[1, 301, 600]] * 2


@pytest.mark.parametrize(
    ("methods", "others"), [(["neurallio-plain"], "with a part changed"), (["erm"], "other methods")]
)
def test_variants_are_not_called_other_methods(builder, methods, others):
    for method in ("neurallio", *methods):
        builder.trial("ablation", "two-moons", method, 0, [1.0])
    part, *_ = sections(builder.read().of("ablation"), Wanted())
    [overview] = [picture for picture in part.pictures if picture.name.endswith("overview")]
    [legend] = overview.draw().legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["ours", others]


def test_no_two_lines_of_a_legend_look_the_same():
    curves = [Curve(f"method {i}", (0.0, 1.0), (1.0, 2.0), (0.0, 0.0), main=i == 9) for i in range(20)]
    looks = line_looks(curves)
    assert len(set(looks.values())) == 20
    # Ours looks the same beside few and beside many, and no other line has its colour.
    assert looks["method 9"] == line_looks(curves[9:10])["method 9"]
    assert [name for name, look in looks.items() if look.colour == LINE_COLOURS[0]] == ["method 9"]


def test_panels_say_what_they_measure_where_it_differs():
    panels = [CurvePanel(name, "", (Curve("a", (0.0,), (1.0,), (0.0,)),), measure=name) for name in ("one", "two")]
    assert [ax.get_ylabel() for ax in curve_panels(panels).axes] == ["one", "two"]
    assert [ax.get_ylabel() for ax in curve_panels(panels, "both").axes] == ["both", ""]


def test_variants_of_ours_stand_beside_each_other(builder):
    for seed in range(2):
        builder.trial("robust", "two-moons", "neurallio", seed, [5.0], dataset_options={"noise_coordinates": 5})
        for k, error in ((3, 3.0), (7, 1.0), (10, 2.0)):
            builder.trial("robust", "two-moons", "neurallio", seed, [error], options={"neighbours": k})
    results = builder.read().of("robust")
    noisy, moons = contests(results)
    assert len(moons.places) == 3 and "7" in moons.chosen and moons.main is None
    assert noisy.main == noisy.chosen
    part, *_ = sections(builder.read(), Wanted())
    drawn = {picture.name: picture for picture in part.pictures}
    assert f"the best is shown: {moons.chosen} on" in drawn["robust-trust"].caption
    # All have a dot that is ours: each dataset has its panel, and there is nothing to tell apart.
    overview = drawn["robust-overview"].draw()
    assert len([ax for ax in overview.axes if ax.axison]) == 2 and not overview.legends


def test_an_option_that_follows_what_is_varied_parts_no_line(builder):
    """Five domains have but four neighbours: under one label they are one line with the others."""
    for count, neighbours in ((5, 3), (10, 5), (20, 5)):
        given = {"options": {"neighbours": neighbours}, "method_label": "neurallio", "extra": {"train_seconds": 1.0}}
        builder.trial("scaling", "two-moons", "neurallio", 0, [1.0], dataset_options={"num_train": count}, **given)
    panel, _ = scaling_panels(builder.read().of("scaling"))
    assert {name: [point.x for point in points] for name, points in panel.lines.items()} == {"NeuralLio": [5, 10, 20]}
    builder.trial(
        "scaling",
        "two-moons",
        "neurallio",
        0,
        [1.0],
        dataset_options={"num_train": 10},
        **given | {"options": {"neighbours": 3}, "method_label": "neurallio, k = 3"},
    )
    assert len(scaling_panels(builder.read().of("scaling"))[0].lines) == 2


def test_what_is_not_varied_parts_lines(builder):
    """Two widths under two labels are two lines wherever width is not what the panel varies, and nothing is lost."""
    for label, hidden in (("neurallio small", 32), ("neurallio large", 512)):
        for count in (10, 20):
            given = {"options": {"hidden": hidden}, "method_label": label, "dataset_options": {"num_train": count}}
            builder.trial("scaling", "two-moons", "neurallio", 0, [1.0], **given)
        for noise in (0, 1, 2):
            given["dataset_options"] = {"noise_coordinates": noise}
            builder.trial("imperfection", "two-moons", "neurallio", 0, [1.0], **given)
    results = builder.read()
    for panel, count in ((scaling_panels(results.of("scaling"))[0], 4), (imperfection_panels(results)[0], 6)):
        assert sorted(panel.lines) == ["NeuralLio, large", "NeuralLio, small"] and len(panel.trials) == count
