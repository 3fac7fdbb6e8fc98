"""The service's own description of its requests and responses, as the protocol defines them."""

from typing import Any

from thetafield.serving.tensors import ENTRIES


def _object(required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _json(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


TEXT = {"type": "string"}
FREE = {"type": "object"}
SHAPE = _list({"type": "integer", "minimum": 0, "maximum": 2**63 - 1})
DATATYPE = {"type": "string", "enum": list(ENTRIES)}
ENTRY = {"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string"}]}
TENSOR = _object(["name", "shape", "datatype", "data"], {"name": TEXT, "shape": SHAPE, "datatype": DATATYPE})
SENT = TENSOR | {"properties": TENSOR["properties"] | {"data": _list({}), "parameters": FREE}}
GIVEN = TENSOR | {"properties": TENSOR["properties"] | {"data": _list(ENTRY)}}
DESCRIBED = _object(
    ["name", "datatype", "shape"],
    {"name": TEXT, "datatype": DATATYPE, "shape": _list({"type": "integer", "minimum": -1})},
)
REQUEST = _object(
    ["inputs"],
    {
        "id": TEXT,
        "parameters": FREE,
        "inputs": _list(SENT) | {"minItems": 1},
        "outputs": _list(_object(["name"], {"name": TEXT, "parameters": FREE})),
    },
)
RESPONSE = _object(["model_name", "outputs"], {"model_name": TEXT, "id": TEXT, "outputs": _list(GIVEN)})
MODEL = _object(
    ["name", "platform", "inputs", "outputs"],
    {
        "name": TEXT,
        "platform": TEXT,
        "versions": _list(TEXT),
        "inputs": _list(DESCRIBED),
        "outputs": _list(DESCRIBED),
        "parameters": FREE,
    },
)
SERVER = _object(["name", "version", "extensions"], {"name": TEXT, "version": TEXT, "extensions": _list(TEXT)})
LIVE = _object(["live"], {"live": {"type": "boolean"}})
READY = _object(["ready"], {"name": TEXT, "live": {"type": "boolean"}, "ready": {"type": "boolean"}})
ERROR = _object(["error"], {"error": TEXT})

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: _json(ERROR, "The request is wrong, and the sentence says how."),
    401: _json(ERROR, "The token is missing or wrong."),
    404: _json(ERROR, "There is no such model."),
    405: _json(ERROR, "The path has another method."),
    413: _json(ERROR, "The body or the number of rows is too large."),
    415: _json(ERROR, "The body is compressed."),
    429: _json(ERROR, "Too many models are being written as ONNX."),
}
INFER_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": REQUEST}}}}
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "θ(z) and trust as safetensors, or the model at z as ONNX.",
        "headers": {"X-Trust": {"schema": TEXT, "description": "Trust at each z, with commas between them."}},
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The text format of Prometheus.", "content": {"text/plain": {"schema": TEXT}}}
}


def answers(schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Return the responses of an endpoint: JSON of a schema, or a refusal."""
    return {200: _json(schema, "The answer.")} | REFUSALS
