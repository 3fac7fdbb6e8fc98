"""The service as its clients meet it: a process of its own, asked over HTTP."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load

from served import Service, classifier, question, stations, table_regressor, tensor
from thetafield import FieldClassifier
from thetafield.errors import DataError
from thetafield.serving.answering import answer_all
from thetafield.serving.memory import FieldMemory, remembering
from thetafield.serving.question import Reader

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(20, 2)), RNG.uniform(size=(20, 2))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial")
    classifier().save(folder / "field")
    with Service(folder, "--name", "turning") as running:
        yield running


@pytest.fixture(scope="module")
def table_service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stations")
    table_regressor().save(folder / "my stations")
    with Service(folder / "my stations") as running:
        yield running


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_metadata_says_what_to_send(service):
    assert service.get("/v2") == (200, {"name": "thetafield", "version": "0.1.0", "extensions": ["field"]})
    assert service.get("/v2/health/live") == (200, {"live": True})
    assert service.get("/v2/health/ready")[1]["ready"]
    assert service.get("/v2/models/turning/ready") == (200, {"name": "turning", "ready": True})
    status, model = service.get("/v2/models/turning")
    assert status == 200 and model["name"] == "turning" and model["platform"] == "thetafield"
    assert model["inputs"] == [
        {"name": "x", "datatype": "FP64", "shape": [-1, 2]},
        {"name": "z", "datatype": "FP64", "shape": [-1, 2]},
    ]
    assert [entry["name"] for entry in model["outputs"]] == ["prediction", "probability", "set", "trust"]
    assert model["parameters"]["classes"] == ["down", "up"]


def test_answers_are_those_of_the_estimator(service):
    estimator = classifier()
    found = service.outputs(question(X, Z))
    assert found["prediction"].tolist() == estimator.predict(X, Z).tolist()
    close(found["probability"], estimator.predict_proba(X, Z))
    close(found["trust"], estimator.trust(Z))
    assert (found["set"] == estimator.predict_set(X, Z)).all()
    wide = service.outputs(question(X, Z, outputs=[{"name": "set"}], parameters={"coverage": 0.99}))
    assert set(wide) == {"set", "trust"} and (wide["set"] == estimator.predict_set(X, Z, coverage=0.99)).all()


def test_one_descriptor_serves_all_rows_and_lists_may_be_nested(service):
    estimator = classifier()
    asked = question(X, Z[:1], id="a 1")
    status, answer = service.infer(asked)
    assert status == 200 and answer["id"] == "a 1" and answer["model_name"] == "turning"
    close(np.array(answer["outputs"][1]["data"]).reshape(-1, 2), estimator.predict_proba(X, Z[0]))
    asked["inputs"][0]["data"] = X.tolist()
    again = service.infer(asked)[1]
    assert again["outputs"] == answer["outputs"]
    asked["inputs"][0] |= {"datatype": "FP32"}
    single = service.outputs(asked)
    close(single["probability"], estimator.predict_proba(X.astype(np.float32), Z[0]))
    asked["inputs"][0] |= {"datatype": "FP16"}
    close(service.outputs(asked)["probability"], estimator.predict_proba(X.astype(np.float16).astype(float), Z[0]))
    whole = np.arange(len(X) * 2).reshape(-1, 2) % 3
    asked["inputs"][0] |= {"datatype": "INT32", "data": whole.tolist()}
    close(service.outputs(asked)["probability"], estimator.predict_proba(whole.astype(float), Z[0]))


def test_far_descriptors_are_answered_with_low_trust(service):
    far = Z + 40
    found = service.outputs(question(X, far))
    close(found["trust"], classifier().trust(far))
    assert found["trust"].max() < 1e-3


def columns(rows):
    kinds = {"wind": "FP64", "sky": "BYTES", "floors": "INT64", "day": "BYTES", "height": "FP32"}
    return [
        {"name": name, "shape": [rows.num_rows], "datatype": kind, "data": rows[name].to_pylist()}
        for name, kind in kinds.items()
    ]


def test_raw_columns_of_a_table_are_encoded_as_in_training(table_service):
    estimator, rows = table_regressor(), stations(12)
    assert table_service.name == "my-stations"
    _, model = table_service.get("/v2/models/my-stations")
    assert {entry["name"]: entry["datatype"] for entry in model["inputs"]} == {
        "wind": "FP64",
        "sky": "BYTES",
        "floors": "FP64",
        "day": "BYTES",
        "height": "FP64",
    }
    found = table_service.outputs({"inputs": columns(rows)})
    close(found["prediction"], estimator.predict(rows))
    close(found["interval"], estimator.predict_interval(rows))
    close(found["trust"], estimator.trust(rows))
    one_day = {entry["name"]: entry for entry in columns(rows)}
    one_day["day"] |= {"shape": [1, 1], "data": ["2024-02-01"]}
    found = table_service.outputs({"inputs": list(one_day.values())})
    moved = rows.set_column(rows.column_names.index("day"), "day", [["2024-02-01"] * 12])
    close(found["prediction"], estimator.predict(moved))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"day": {"data": ["soon"] * 4}}, "which is no date"),
        ({"wind": {"datatype": "BYTES", "data": ["a"] * 4}}, "held numbers in the training rows"),
        ({"height": {"data": [None] * 4}}, "'height' is missing in row 0"),
        ({"floors": {"data": [1.5] * 4}}, "of datatype INT64 has numbers at entry 0"),
        ({"floors": {"datatype": "INT8", "data": [1, 2, 3, 400]}}, "beyond the range of its datatype INT8"),
        ({"sky": {"shape": [2, 2]}}, "one entry per row was expected"),
        ({"sky": {"name": "skies"}}, "There is no input 'skies'"),
        ({"wind": None}, "Input 'wind' is missing: give it."),
        ({"wind": None, "sky": None, "day": None}, "Inputs 'wind', 'sky', 'day' are missing: give them."),
    ],
)
def test_wrong_columns_are_said(table_service, change, sentence):
    sent = {entry["name"]: entry for entry in columns(stations(4))}
    for name, fields in change.items():
        sent[name] = None if fields is None else sent[name] | fields
    status, answer = table_service.infer({"inputs": [entry for entry in sent.values() if entry is not None]})
    assert status == 400 and sentence in answer["error"]


def test_the_clients_of_the_document_get_the_same_answers(service):
    text = (Path(__file__).parents[1] / "docs/serving.md").read_text()
    for written in ("127.0.0.1:8000", "localhost:8000"):
        text = text.replace(f"{written}/v2/models/two-moons-neurallio-0", f"127.0.0.1:{service.port}/v2/models/turning")
    x, z = np.array([[0.5, 0.1], [1.0, 2.0]]), np.array([12.0, 30.0])
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    close(names["found"]["probability"], classifier().predict_proba(x, z))
    if shutil.which("curl"):
        command = next(block for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "/infer" in block)
        answer = json.loads(subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout)
        assert answer["id"] == "42" and answer["outputs"][0]["data"] == classifier().predict(x, z).tolist()


def test_the_field_itself_is_a_file(service):
    status, headers, body = service.ask("GET", "/field?z=0.5,0.25&z=3,3")
    assert status == 200
    content, points = load(body), np.array([[0.5, 0.25], [3, 3]])
    close(content["theta"], classifier().field_(points))
    close(content["trust"], classifier().trust(points))
    close([float(word) for word in headers["X-Trust"].split(",")], classifier().trust(points))


def test_the_model_at_z_is_a_file_for_other_programs(service):
    import onnxruntime

    status, headers, body = service.ask("GET", "/field?z=0.5,0.25&format=onnx")
    assert status == 200 and float(headers["X-Trust"]) == pytest.approx(classifier().trust([0.5, 0.25])[0], rel=1e-4)
    session = onnxruntime.InferenceSession(body, providers=["CPUExecutionProvider"])
    expected = classifier().model_at([0.5, 0.25])(torch.tensor(X, dtype=torch.float32)).detach()
    np.testing.assert_allclose(session.run(None, {"x": X.astype(np.float32)})[0], expected, rtol=1e-4, atol=1e-5)


def test_no_answer_is_lost_or_mixed_up_at_64_connections(service):
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(64, 8, 5, 2)), rng.uniform(size=(64, 8, 1, 2))
    expected = classifier().predict_proba(x.reshape(-1, 2), np.repeat(z, 5, axis=2).reshape(-1, 2)).reshape(64, 8, 5, 2)

    def talk(one):
        line = service.connect()
        found = [service.outputs(question(x[one, k], z[one, k]), line)["probability"] for k in range(8)]
        line.close()
        return np.array(found)

    with ThreadPoolExecutor(64) as clients:
        found = np.array(list(clients.map(talk, range(64))))
    close(found, expected)


def test_one_request_without_an_answer_spoils_no_other(service):
    beyond = question(np.full((2, 2), 3e38), Z[:1])

    def ask(k):
        return service.infer(beyond if k % 8 == 0 else question(X, Z))

    with ThreadPoolExecutor(32) as clients:
        answers = list(clients.map(ask, range(96)))
    assert all(status == 200 for k, (status, _) in enumerate(answers) if k % 8)
    assert all(status < 500 for status, _ in answers)


def test_metrics_count_requests_rows_and_remembered_descriptors(service):
    def read():
        text = service.ask("GET", "/metrics")[2].decode()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}

    point = [[0.123, 0.456]]
    before = read()
    for _ in range(3):
        service.outputs(question(X, point))
    after = read()
    path = "/v2/models/{model_name}/infer"

    def grown(name):
        return after[name] - before[name]

    assert grown(f'thetafield_requests_total{{path="{path}",status="200"}}') == 3
    assert grown(f'thetafield_request_seconds_count{{path="{path}"}}') == 3
    assert grown("thetafield_rows_total") == 60
    assert grown("thetafield_field_cache_misses_total") == 1 and grown("thetafield_field_cache_hits_total") >= 2
    assert not any("created" in name for name in after)


def test_a_stopped_service_finishes_what_it_has_begun(tmp_path):
    classifier().save(tmp_path / "f")
    with Service(tmp_path / "f") as service:
        body = json.dumps(question(X, Z)).encode()
        head = f"POST /v2/models/f/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as line, line.makefile("rb") as heard:
            line.sendall(head + body[:50])
            service.get("/v2/health/ready")  # what was sent before is read by now
            service.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert service.process.poll() is None
            line.sendall(body[50:])
            answer = heard.read()
        assert answer.startswith(b"HTTP/1.1 200") and b'"trust"' in answer
        assert service.process.wait(20) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", service.port), timeout=5)


def test_the_description_holds_for_generated_requests(service):
    """Schemathesis asks whatever the service's own OpenAPI allows, and much that it does not."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{service.port}/openapi.json"]
    command += ["--checks", checks, "--max-examples", "15", "--phases", "coverage,fuzzing", "--seed", "1"]
    command += ["--exclude-path", "/metrics", "--suppress-health-check", "all", "--no-color"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_memory_is_bounded_and_forgets_what_was_not_asked_for_longest():
    model = remembering(classifier().model_, capacity=3)
    points = torch.tensor(Z[:6], dtype=torch.float32)
    for some in (points[:3], points[[0]], points[3:5]):  # 0 is asked for again, so that 1 and 2 are forgotten
        torch.testing.assert_close(model.memory.recall(some).theta, classifier().model_.theta(some))
    assert (model.memory.hits, model.memory.misses, len(model.memory)) == (1, 5, 3)
    model.memory.recall(points[[0, 3, 4]])
    assert (model.memory.hits, model.memory.misses) == (4, 5)
    many = model.memory.recall(points)  # more than it can hold
    torch.testing.assert_close(many.theta, classifier().model_.theta(points))
    assert len(model.memory) == 3
    torch.testing.assert_close(model.theta(points[0]), classifier().model_.theta(points[0]))


def test_memory_is_shared_between_threads():
    memory = FieldMemory(classifier().model_, capacity=5)
    points = torch.tensor(Z, dtype=torch.float32)
    expected = classifier().model_.theta(points)

    def recall(k):
        some = [k % 20, (k + 7) % 20]
        torch.testing.assert_close(memory.recall(points[some]).theta, expected[some])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(recall, range(200)))
    assert memory.hits + memory.misses == 400 and len(memory) == 5


def test_trees_are_served_without_a_field(tmp_path):
    grown = FieldClassifier("trees", options={"rounds": 5, "min_samples": 2}, random_state=0)
    grown.fit(X, X[:, 0] > Z[:, 0], z=Z, domain=np.arange(20)).save(tmp_path / "grown")
    with Service(tmp_path / "grown") as service:
        found = service.outputs(question(X, Z))
        assert (found["prediction"] == grown.predict(X, z=Z)).all()
        np.testing.assert_allclose(found["probability"], grown.predict_proba(X, z=Z), atol=1e-6)
        np.testing.assert_allclose(found["trust"], grown.trust(Z), atol=1e-6)
        assert service.get("/v2")[1]["extensions"] == []
        status, refusal = service.get("/field?z=1,2")
        assert status == 404 and "trees has no parameters θ(z): ask /v2/models/grown/infer" in refusal["error"]


def test_a_field_without_descriptors_takes_x_alone():
    estimator = FieldClassifier("erm", options={"steps": 20}, random_state=0, device="cpu").fit(X, X[:, 0] > 0)
    model = remembering(estimator.model_)
    reader = Reader(model, max_rows=100)
    (answer,) = answer_all(model, [reader.read(json.dumps({"inputs": [tensor("x", X)]}).encode())])
    assert (answer.outputs["prediction"] == estimator.predict(X)).all() and (answer.outputs["trust"] == 1).all()
    assert json.loads(answer.as_json("m", None))["outputs"][0]["datatype"] == "BOOL"
    with pytest.raises(DataError, match="There is no input 'z'"):
        reader.read(json.dumps(question(X, Z)).encode())
