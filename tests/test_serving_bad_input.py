"""What clients get wrong: one sentence in the protocol's form and a status of 400 to 499, never more."""

import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from served import Service, classifier, question, tensor
from thetafield.errors import ThetafieldError
from thetafield.serving.run import Terms, serve

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(4, 2)).round(3), RNG.uniform(size=(4, 2)).round(3)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial")
    classifier().save(folder / "field")
    with Service(folder, "--name", "m", "--max-body", "0.5", "--max-rows", "100") as running:
        yield running


def inputs(x=None, z=None):
    return {"inputs": [tensor("x", X) | (x or {}), tensor("z", Z) | (z or {})]}


def raw(text):
    return json.dumps(inputs()).replace(str(X[0, 0]), text, 1).encode()


BAD = {
    "empty": (b"", "The body is empty"),
    "no JSON": (b"{", "The body is not JSON"),
    "no text": (b"\xff\xfe", "The body is not JSON"),
    "deep": (b"[" * 100_000, "The body is not JSON"),
    "NaN": (raw("NaN"), "JSON has no NaN and no Infinity"),
    "infinity": (raw("-Infinity"), "JSON has no NaN and no Infinity"),
    "overflow": (raw("1e999"), ""),
    "too large for FP32": (inputs({"datatype": "FP32", "data": [1e39] * 8}), "x has infinity in row 0"),
    "too large at all": (inputs({"data": [1e300] * 8}), "x has 1e+300, which is too large"),
    "a list": ([1, 2], "not an object"),
    "text": ("text", "not an object"),
    "no inputs": ({}, "needs inputs"),
    "inputs of no kind": ({"inputs": 3}, "needs inputs"),
    "no tensors": ({"inputs": []}, "needs inputs"),
    "a tensor that is text": ({"inputs": ["x", "z"]}, "An input is an object"),
    "no name": ({"inputs": [{}]}, "The name of an input is text"),
    "no data": ({"inputs": [{"name": "x", "shape": [1], "datatype": "FP32"}]}, "Input 'x' has no data"),
    "no z": ({"inputs": [tensor("x", X)]}, "Input 'z' is missing"),
    "no x": ({"inputs": [tensor("z", Z)]}, "Input 'x' is missing"),
    "one more": ({"inputs": [*inputs()["inputs"], tensor("y", X)]}, "There is no input 'y'"),
    "twice": ({"inputs": [*inputs()["inputs"], tensor("x", X)]}, "Input 'x' is given twice"),
    "narrow x": (inputs({"shape": [8, 1]}), "x has shape [8, 1], but [n, 2] was expected"),
    "flat x": (inputs({"shape": [8]}), "x has shape [8], but [n, 2] was expected"),
    "wide z": (inputs(z={"shape": [2, 4]}), "z has shape [2, 4], but [4, 2] or [1, 2] was expected"),
    "few z": (inputs(z=tensor("z", Z[:3])), "z has shape [3, 2]"),
    "no rows": (inputs({"shape": [0, 2], "data": []}), "There are no rows"),
    "other length": (inputs({"shape": [5, 2]}), "has 8 entries, but its shape [5, 2] needs 10"),
    "negative shape": (inputs({"shape": [-4, 2]}), "needs a shape of whole numbers"),
    "broken shape": (inputs({"shape": [4.0, 2]}), "needs a shape of whole numbers"),
    "shape of truth": (inputs({"shape": [True, 2]}), "needs a shape of whole numbers"),
    "shape of text": (inputs({"shape": "4,2"}), "needs a shape of whole numbers"),
    "huge shape": (inputs({"shape": [2**62, 2]}), "needs"),
    "data of text": (inputs({"data": "1, 2"}), "needs data as a list"),
    "text in data": (inputs({"data": ["1.5"] * 8}), "has text at entry 0"),
    "truth in data": (inputs({"data": [1.5] * 7 + [True]}), "has truth values at entry 7"),
    "nothing in data": (inputs({"data": [None] * 8}), "JSON has no NaN, and null is no number"),
    "ragged data": (inputs({"data": [[1.0], [2.0, 3.0, 4.0], [1, 2], [3, 4]]}), "nested unlike its shape"),
    "deeper data": (inputs({"data": [[[1.0], [2.0]]] * 4}), "has lists at entry 0"),
    "unknown datatype": (inputs({"datatype": "FP23"}), "did you mean"),
    "datatype of no kind": (inputs({"datatype": 3}), "has datatype whole numbers"),
    "whole numbers": (inputs({"datatype": "INT8", "data": [1] * 7 + [200]}), "beyond the range of its datatype INT8"),
    "broken whole numbers": (inputs({"datatype": "INT64", "data": [1.5] * 8}), "has numbers at entry 0"),
    "too large for FP16": (inputs({"datatype": "FP16", "data": [1e5] * 8}), "x has infinity in row 0"),
    "bytes": (inputs({"datatype": "BYTES", "data": ["a"] * 8}), "has datatype BYTES, but numbers were expected"),
    "truth": (inputs({"datatype": "BOOL", "data": [True] * 8}), "has datatype BOOL, but numbers were expected"),
    "unknown output": (inputs() | {"outputs": [{"name": "probabilities"}]}, "did you mean 'probability'?"),
    "interval of classes": (inputs() | {"outputs": [{"name": "interval"}]}, "There is no output 'interval'"),
    "outputs of no kind": (inputs() | {"outputs": ["prediction"]}, "outputs is a list of objects"),
    "coverage": (inputs() | {"parameters": {"coverage": 1.5}}, "coverage is a share between 0 and 1"),
    "parameters": (inputs() | {"parameters": [1]}, "parameters is an object"),
    "id": (inputs() | {"id": 7}, "The id of a request is text"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_mistake_is_one_sentence(service, name):
    content, sentence = BAD[name]
    status, answer = service.infer(content)
    assert status == 400, answer
    assert list(answer) == ["error"] and sentence in answer["error"]
    assert answer["error"].endswith(".") and "\n" not in answer["error"] and "np." not in answer["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("POST", "/v2/models/n/infer", 404, "There is no model 'n'"),
        ("GET", "/v2/models/n", 404, "There is no model 'n'"),
        ("GET", "/v2/models/n/ready", 404, "There is no model 'n'"),
        ("GET", "/nothing", 404, "There is nothing at this path"),
        ("GET", "/v2/models/m/infer", 405, "This path has another method"),
        ("GET", "/field", 400, "The descriptor is missing"),
        ("GET", "/field?z=1", 400, "2 numbers were expected (z0, z1)"),
        ("GET", "/field?z=1,b", 400, "numbers with commas between them, but got 'b'"),
        ("GET", "/field?z=1,nan", 400, "finite numbers, but got 'nan'"),
        ("GET", "/field?z=1,1e99", 400, "finite numbers, but got '1e99'"),
        ("GET", "/field?z=1,2&format=pickle", 400, "The query's format is wrong"),
        ("GET", "/field?z=1,2&z=1,3&format=onnx", 400, "ONNX holds the model at one z, but got 2"),
        ("GET", "/field?" + "&".join(["z=1,2"] * 101), 413, "101 descriptors, but 100 are allowed"),
    ],
)
def test_wrong_paths_are_said(service, method, path, status, sentence):
    found, _, body = service.ask(method, path, b"{}" if method == "POST" else None)
    assert found == status and sentence in json.loads(body)["error"]


def test_compressed_bodies_are_refused(service):
    found, _, body = service.ask("POST", "/v2/models/m/infer", b"\x1f\x8b", {"Content-Encoding": "gzip"})
    assert found == 415 and "compressed" in json.loads(body)["error"]


def test_many_rows_are_refused(service):
    status, answer = service.infer(question(np.zeros((101, 2)), Z[:1]))
    assert status == 413 and "101 rows, but 100 are allowed" in answer["error"]


CHUNKED = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nLong: "


@pytest.mark.parametrize("start", [b"GET /field?z=", b"GET / HTTP/1.1\r\nHost: a\r\nLong: ", CHUNKED])
def test_headers_without_an_end_are_refused_and_not_kept(service, start):
    before = service.megabytes()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line, line.makefile("rb") as heard:
        line.sendall(start)
        with suppress(ConnectionError):  # the service may have hung up by then
            for _ in range(200):
                line.sendall(b"1" * 2**18)
        assert heard.readline().startswith(b"HTTP/1.1 431 ")
        assert "more than 65536 bytes" in heard.read().decode()
    assert service.megabytes() < before + 20
    assert service.infer(inputs())[0] == 200


def test_long_headers_and_bodies_that_follow_each_other_are_read(service):
    """What is counted is one request's own headers: 60 kB of them pass, again and again, and so do bodies."""
    body = json.dumps(inputs()).encode()
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n" % len(body)
    asked = head + b"Long: " + b"1" * 60_000 + b"\r\n\r\n" + body
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line, line.makefile("rb") as heard:
        for _ in range(3):
            for at in range(0, len(asked), 7_000):
                line.sendall(asked[at : at + 7_000])
                time.sleep(0.002)  # so that each is read by itself
            assert heard.readline().startswith(b"HTTP/1.1 200 ")
            length = 0
            while (entry := heard.readline()) != b"\r\n":
                length = int(entry.split(b":")[1]) if entry.lower().startswith(b"content-length") else length
            assert len(heard.read(length)) == length


def test_a_body_that_comes_with_the_end_of_its_headers_is_no_header(service):
    rows = 100
    body = json.dumps(question(np.full((rows, 2), 0.123), Z[:1]) | {"id": "i" * 200_000}).encode()
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line, line.makefile("rb") as heard:
        line.sendall(head)
        time.sleep(0.2)
        line.sendall(b"\r\n" + body)
        assert heard.readline().startswith(b"HTTP/1.1 200 ")


def test_a_body_of_100_megabytes_is_refused_before_it_is_read(service):
    before = service.megabytes()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line, line.makefile("rb") as heard:
        line.sendall(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + b"[" * 1000)
        answer = heard.read()
    assert answer.startswith(b"HTTP/1.1 413") and b"larger than 0.5 MB: split the request" in answer
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line, line.makefile("rb") as heard:
        length = b"0" * 20 + b"60000000"  # zeros hide nothing
        line.sendall(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + b"\r\n\r\n[[[[")
        assert heard.read().startswith(b"HTTP/1.1 413")
    status, _, body = service.ask("POST", "/v2/models/m/infer", b"[" * 700_000)  # sent whole: it is heard all the same
    assert status == 413 and "larger than 0.5 MB" in json.loads(body)["error"]
    chunks = (b"[" * 10_000 for _ in range(70))  # of no declared size
    try:
        status, _, body = service.ask("POST", "/v2/models/m/infer", chunks)
        assert status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # cut off while it was sending
    assert service.megabytes() < before + 20
    assert service.infer(inputs())[0] == 200


def test_lines_that_are_not_http_get_4xx_and_do_no_harm(service):
    for sent in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"\r\n",
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            answer = line.recv(1000)
        assert answer[9:10] in (b"4", b"")
    assert service.infer(inputs())[0] == 200


def mangled(rng):
    """A request with one thing wrong somewhere in it."""
    content = inputs()
    junk = [None, -1, 1.5, "y", [], {}, [[]], True, 10**30, [1, "a"], {"name": 1}, "\u0000", 1e308]
    place = rng.choice(["bytes", "cut", "entry", "tensor", "request"])
    body = json.dumps(content).encode()
    if place == "bytes":
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 100)))
    if place == "cut":
        return body[: rng.randrange(len(body))]
    if place == "entry":
        content["inputs"][rng.randrange(2)]["data"][rng.randrange(8)] = rng.choice([None, "a", [], {}, True, 1e300])
    elif place == "tensor":
        key = rng.choice(["name", "shape", "datatype", "data"])
        content["inputs"][rng.randrange(2)][key] = rng.choice(junk)
    else:
        content["inputs"] = rng.choice(junk)
    return json.dumps(content).encode()


def test_hundreds_of_malformed_requests_get_4xx(service):
    rng = random.Random(0)
    line, before = service.connect(), service.megabytes()
    for _ in range(600):
        body = mangled(rng)
        status, answer = service.infer(body, line)
        assert status == 400 and answer["error"].endswith("."), (body, answer)
    line.close()
    assert service.megabytes() < before + 20


def test_a_token_is_asked_for_and_its_file_is_looked_at(tmp_path):
    classifier().save(tmp_path / "f")
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o644)
    with Service(tmp_path / "f", "--host", "0.0.0.0", "--token-file", token) as service:
        assert "Others may read the token" in service.said[0] and "chmod 600" in service.said[0]
        assert not any("Everybody" in line for line in service.said)
        assert service.get("/v2/health/live")[0] == service.get("/v2/health/ready")[0] == 200
        for given in (
            {},
            {"Authorization": "Bearer s3cre"},
            {"Authorization": "s3cret"},
            {"Authorization": "Bearer é"},
        ):
            headers = {name: value.encode("latin-1") for name, value in given.items()}
            for method, path in (("GET", "/v2"), ("POST", "/v2/models/f/infer"), ("GET", "/metrics")):
                status, said, body = service.ask(method, path, b"{}" if method == "POST" else None, headers)
                assert status == 401 and said["WWW-Authenticate"] == "Bearer"
                assert "needs its token" in json.loads(body)["error"]
        good = {"Authorization": "Bearer s3cret"}
        assert service.ask("POST", "/v2/models/f/infer", json.dumps(inputs()), good)[0] == 200
        assert service.stop(signal.SIGINT) == 0


@pytest.mark.parametrize(
    ("folder", "terms", "sentence"),
    [
        ("empty", {}, "empty holds no field: give a saved field, or a trial's folder"),
        ("damaged", {}, "was altered or truncated"),
        ("good", {"token_file": "none"}, "The token cannot be read from"),
        ("good", {"token_file": "blank"}, "needs one line with the token"),
        ("good", {"name": "a/b"}, "A name is letters, digits"),
        ("good", {"device": "tpu"}, "device is one of auto, cpu or cuda"),
        ("good", {"port": 1, "host": "192.0.2.1"}, "192.0.2.1:1 cannot be listened on"),
        ("good", {"host": "no.such.host.invalid"}, "cannot be listened on"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, folder, terms, sentence):
    if folder == "empty":
        (tmp_path / folder).mkdir()
    else:
        classifier().save(tmp_path / folder)
    if folder == "damaged":
        content = (tmp_path / "damaged/field.safetensors").read_bytes()
        (tmp_path / "damaged/field.safetensors").write_bytes(content[:-7])
    (tmp_path / "blank").write_text("\n")
    if "token_file" in terms:
        terms = {"token_file": tmp_path / terms["token_file"]}
    with pytest.raises(ThetafieldError, match=re.escape(sentence)) as found:
        serve(tmp_path / folder, Terms(**terms), pytest.fail)
    assert str(found.value).endswith(".") and "\n" not in str(found.value)


def test_a_taken_port_is_exit_code_2(tmp_path):
    classifier().save(tmp_path / "good")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "thetafield", "serve", "good", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout
    assert f"127.0.0.1:{port} cannot be listened on" in done.stderr and len(done.stderr.strip().splitlines()) == 1
