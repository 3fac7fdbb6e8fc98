"""Small fields, and `thetafield serve` as a process of its own that answers for them."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from thetafield import DomainSet, FieldClassifier, FieldRegressor
from thetafield.fields.conformal import Conformal
from thetafield.fields.doubt import blind_signs
from thetafield.geometry.trust import Calibration

TINY = {"epochs": 4, "samples": 20, "base_steps": 40, "tune_steps": 20, "latent_dim": 4, "neighbours": 3}
TINY |= {"base": "pooled", "metric": False, "select": False}


def calibrated(estimator):
    """Return the estimator with a calibration that took no held-out domains: only its answers matter here."""
    model = estimator.model_
    num_signs = blind_signs(model, model.trust.anchors[:1]).shape[1]
    line = Calibration((1.0,) * num_signs, (0.5,) * num_signs, -2.0)
    model.trust = model.trust.calibrated(line, line, attained=0.1, naive=2.0)
    model.conformal = Conformal(torch.linspace(0, 2, 1001, dtype=torch.float64))
    return estimator


@cache
def classifier():
    """A classifier with labels that are text, for two inputs and two descriptors."""
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(14, 2))
    code = np.repeat(np.arange(14), 40)
    X = rng.normal(size=(len(code), 2))
    turned = X[:, 0] * np.cos(3 * z[code, 0]) + X[:, 1] * np.sin(3 * z[code, 0])
    fresh = FieldClassifier(options=TINY, predictor_options={"hidden": (8,)}, random_state=0, device="cpu")
    return calibrated(fresh.fit(X, np.where(turned > 0, "up", "down"), z=z[code], domain=code))


def stations(num_rows=120):
    rng = np.random.default_rng(1)
    code = np.arange(num_rows) % 6
    days = [f"2024-{1 + 2 * c:02d}-15" for c in code]
    wind = [None if i % 10 == 3 else float(w) for i, w in enumerate(rng.normal(size=num_rows))]
    content = {"wind": wind, "sky": rng.choice(["clear", "cloud"], num_rows), "floors": rng.integers(1, 9, num_rows)}
    return pa.table(content | {"day": days, "height": 10.0 * code, "warmth": rng.normal(size=num_rows) + code})


@cache
def table_regressor():
    """A regressor that was fitted on a table with gaps, categories, whole numbers and a date among its descriptors."""
    domains = DomainSet.from_frame(stations(), target="warmth", descriptors=["day", "height"])
    return calibrated(FieldRegressor("erm-d", options={"steps": 40}, random_state=0, device="cpu").fit(domains))


class Service:
    """`thetafield serve` on a free port."""

    def __init__(self, folder, *words):
        command = [sys.executable, "-m", "thetafield", "serve", str(folder), "--port", "0", *map(str, words)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
        self.said = []
        while not (found := re.search(r"http://[^/]+:(\d+)/v2/models/(\S+)", "".join(self.said[-1:]))):
            line = self.process.stderr.readline()
            assert line, f"the service did not start: {self.said}"
            self.said.append(line)
        self.port, self.name = int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stderr.close()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(40)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, method, path, body=None, headers=None, line=None):
        """Return (status, headers, body) of one request, on a line of its own or a given one."""
        if line is None:
            with closing(self.connect()) as line:
                return self.ask(method, path, body, headers, line)
        line.request(method, path, body, headers or {})
        response = line.getresponse()
        return response.status, response.headers, response.read()

    def get(self, path):
        status, _, body = self.ask("GET", path)
        return status, json.loads(body)

    def infer(self, content, line=None):
        """Return the status and the content of an answer."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        status, _, answer = self.ask("POST", f"/v2/models/{self.name}/infer", body, line=line)
        return status, json.loads(answer)

    def outputs(self, content, line=None):
        """Return outputs as arrays."""
        status, answer = self.infer(content, line)
        assert status == 200, answer
        return {entry["name"]: np.array(entry["data"]).reshape(entry["shape"]) for entry in answer["outputs"]}

    def megabytes(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def tensor(name, values, datatype="FP64"):
    values = np.asarray(values)
    return {"name": name, "shape": list(values.shape), "datatype": datatype, "data": values.ravel().tolist()}


def question(x, z, **rest):
    return {"inputs": [tensor("x", x), tensor("z", z)], **rest}
