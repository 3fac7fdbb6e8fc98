"""Small fields of every kind that the explorer's page has to answer for."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from thetafield import DomainSet, FieldClassifier, FieldRegressor
from thetafield.geometry.terrain import Terrain
from thetafield.geometry.trust import Calibration

QUICK = {"epochs": 3, "base_steps": 10, "tune_steps": 5, "samples": 20, "neighbours": 3, "select": False}
PAPER = {"epochs": 3, "samples": 20, "neighbours": 3, "latent_dim": 8, "widths": (32, 16)}
# Name → method, its options, and whether there is one descriptor only.
CASES = {
    "erm": ("erm", {"steps": 5}, False),
    "erm-d": ("erm-d", {"steps": 5, "hidden": (8, 4)}, False),
    "erm-d, knots": ("erm-d", {"steps": 5, "hidden": (), "knots": 4}, False),
    "nda": ("nda", {"steps": 5, "tune_steps": 5}, False),
    "film": ("film", {"steps": 5}, False),
    "hypernet": ("hypernet", {"steps": 5}, False),
    "interpolate": ("interpolate", {"steps": 5, "tune_steps": 5}, False),
    "blended": ("neurallio", {**QUICK, "blend": 4, "bandwidth": 0.5, "base": "reading", "shrink": 0.7}, False),
    "on knots": ("neurallio", {**QUICK, "base": "knots", "shrink": 0.7}, False),
    "one chart": ("neurallio", {**QUICK, "reach": 1.0}, False),
    "commuting": ("neurallio", {**QUICK, "generators": "commuting", "latent_dim": 8, "num_generators": 3}, False),
    "paper": ("neurallio-paper", PAPER, False),
    "plain": ("neurallio-plain", PAPER, False),
    "without Lie": ("neurallio-nolie", PAPER, False),
    "drain": ("drain", {"epochs": 3}, True),
    "koodos": ("koodos", {"epochs": 2, "widths": (32, 16), "latent_dim": 8}, True),
    "neural flow": ("koodos", {"epochs": 2, "widths": (32, 16), "latent_dim": 8, "dynamics": "neural"}, True),
    "tknets": ("tknets", {"steps": 3}, True),
    "trees": ("trees", {"rounds": 20, "min_samples": 5}, False),
    "trees-x": ("trees-x", {"rounds": 20, "min_samples": 5}, False),
}


def rows(num_domains=14, size=25, one=False):
    """Return inputs of two numbers, labels, descriptors and domains of rows."""
    rng = np.random.default_rng(0)
    z = np.linspace(3, 9, num_domains)[:, None] if one else rng.uniform([0, -40], [50, 10], (num_domains, 2))
    domain = np.repeat(np.arange(num_domains), size)
    x = rng.normal(size=(len(domain), 2)) * [2, 30] + [0, 100]
    turn = z[domain, 0] / 10
    y = np.where(np.cos(turn) * x[:, 0] / 2 + np.sin(turn) * (x[:, 1] - 100) / 30 > 0, "up", "down")
    return x, y, z[domain], domain


@cache
def classifier(name):
    """Return a classifier of points in the plane, fitted for a moment."""
    method, options, one = CASES[name]
    x, y, z, domain = rows(one=one)
    fitted = FieldClassifier(method, options=options, predictor_options={"hidden": (16, 8)}, random_state=0)
    return fitted.fit(x, y, z=z, domain=domain)


@cache
def calibrated(width=0.7):
    """Return the blended field with a trust that reads its doubts."""
    fitted = FieldClassifier("neurallio", options=CASES["blended"][1], random_state=0)
    x, y, z, domain = rows()
    fitted.fit(x, y, z=z, domain=domain)
    points = ((-1.0, 0.5), (0.2, 1.1), (1.3, -0.7))
    terrain = Terrain((0.1, 0.0), (0.9, 0.8), (0.5, 0.4), (0.3, 0.2), points, (0.2, -0.1, 0.05), width)
    blind = Calibration(scales=(1.0, 0.5, 0.2), weights=(0.3, 0.2, 0.1), intercept=-1.5, terrain=terrain)
    fitted.model_.trust = replace(fitted.model_.trust, blind=blind, sighted=None, naive=0.5, attained=0.05)
    return fitted


def frame():
    """Return a table with numbers, gaps, categories and dates, and three descriptors of a station."""
    rng = np.random.default_rng(1)
    station = np.repeat(np.arange(12), 20)
    place = rng.uniform([40, -5, 0], [60, 20, 2000], (12, 3))[station]
    heat, damp = rng.normal(15, 6, len(station)), rng.uniform(20, 100, len(station))
    damp[rng.random(len(station)) < 0.1] = np.nan
    sky = rng.choice(["sun", "rain", "snow"], len(station))
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, len(station)), "D")
    load = 100 + heat * np.sin(place[:, 0] / 6) + 5 * (sky == "rain")
    columns = {"station": station, "lat": place[:, 0], "lon": place[:, 1], "altitude": place[:, 2]}
    return pd.DataFrame({**columns, "heat": heat, "damp": damp, "sky": sky, "day": day, "load": load})


@cache
def regressor(method="neurallio"):
    """Return a regressor of a table, fitted for a moment."""
    domains = DomainSet.from_frame(frame(), target="load", domain="station", descriptors=["lat", "lon", "altitude"])
    options = {"neurallio": {**QUICK, "blend": 3}, "trees": {"rounds": 40, "min_samples": 5}}[method]
    head = {"hidden": (16,)}
    return FieldRegressor(method, options=options, predictor_options=head, random_state=0).fit(domains)


@cache
def image_classifier(method="erm-d"):
    """Return a classifier of small images, and the images."""
    rng = np.random.default_rng(2)
    domain = np.repeat(np.arange(6), 10)
    x = rng.integers(256, size=(60, 1, 16, 16)).astype(np.uint8)
    z = rng.uniform(size=(6, 2))[domain]
    domains = DomainSet.from_arrays(x, np.arange(60) % 3, domain=domain, z=z, classification=True)
    options = {"erm-d": {"steps": 5, "hidden": (8,)}, "trees": {"rounds": 5, "min_samples": 3}}[method]
    return FieldClassifier(method, options=options, predictor="convnet", random_state=0).fit(domains), domains
