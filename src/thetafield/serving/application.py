"""The endpoints: those of the Open Inference Protocol, the field itself, and the metrics."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from thetafield import __version__
from thetafield.errors import ThetafieldError, closest
from thetafield.fields.model import FieldModel, Model
from thetafield.serving import openapi
from thetafield.serving.admission import MEGABYTE, Admission
from thetafield.serving.answering import answer_all
from thetafield.serving.batching import Batcher
from thetafield.serving.description import describe
from thetafield.serving.memory import remembering
from thetafield.serving.metrics import Metrics
from thetafield.serving.question import Reader
from thetafield.serving.refusal import Refusal, status_of
from thetafield.serving.writing import OnnxWriter, as_safetensors, read_descriptors

MOST_NUMBERS = 2**25  # of θ in one answer of /field


def application(
    served: Model,
    name: str,
    token: str | None = None,
    max_body: float = 16.0,
    max_rows: int = 10_000,
    capacity: int | None = None,
) -> Admission:
    """Return the service for one model, as ASGI has it.

    Args:
        served: The model; one without θ(z), such as trees, has everything but `/field`.
        name: What it is called in paths.
        token: Who has it may ask; None lets everybody in.
        max_body: Most megabytes of a request's body.
        max_rows: Most rows of a request.
        capacity: Most descriptors whose θ(z) is kept; as many as 128 MB hold by default.
    """
    model = remembering(served, capacity)
    reader, metrics = Reader(model, max_rows), Metrics(model.memory)
    batcher, writer = Batcher(partial(answer_all, model), metrics.answered), OnnxWriter(model)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.close()
        writer.close()

    app = FastAPI(
        title="thetafield",
        version=__version__,
        description="A parameter field behind the Open Inference Protocol.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    _say_errors(app)

    def check_name(given: str) -> None:
        if given != name:
            raise Refusal(404, f"There is no model {given[:50]!r}; {closest(given[:50], [name])}")

    # First, since paths are looked through in this order.
    @app.post(
        "/v2/models/{model_name}/infer",
        responses=openapi.answers(openapi.RESPONSE),
        openapi_extra=openapi.INFER_BODY,
    )
    async def infer(model_name: str, request: Request) -> Response:
        check_name(model_name)
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refusal(415, "The body is compressed: send plain JSON.")
        question = reader.read(await request.body())
        answer = await batcher.ask(question)
        return Response(answer.as_json(name, question.id), media_type="application/json")

    @app.get("/v2", responses=openapi.answers(openapi.SERVER))
    async def server_metadata() -> JSONResponse:
        extensions = ["field"] if isinstance(model, FieldModel) else []
        return JSONResponse({"name": "thetafield", "version": __version__, "extensions": extensions})

    @app.get("/v2/health/live", responses=openapi.answers(openapi.LIVE))
    async def live() -> JSONResponse:
        return JSONResponse({"live": True})

    @app.get("/v2/health/ready", responses=openapi.answers(openapi.READY))
    async def ready() -> JSONResponse:
        return JSONResponse({"live": True, "ready": True})

    @app.get("/v2/models/{model_name}", responses=openapi.answers(openapi.MODEL))
    async def model_metadata(model_name: str) -> JSONResponse:
        check_name(model_name)
        return JSONResponse(describe(model, name, reader.outputs))

    @app.get("/v2/models/{model_name}/ready", responses=openapi.answers(openapi.READY))
    async def model_ready(model_name: str) -> JSONResponse:
        check_name(model_name)
        return JSONResponse({"name": name, "ready": True})

    @app.get("/field", responses=openapi.FILE | openapi.REFUSALS, response_class=Response)
    async def field_at(
        z: Annotated[list[str] | None, Query(description="A descriptor: numbers with commas between them.")] = None,
        format: Annotated[Literal["safetensors", "onnx"], Query(description="What to write.")] = "safetensors",
    ) -> Response:
        if not isinstance(model, FieldModel):
            raise Refusal(404, f"{model.recipe.method} has no parameters θ(z): ask /v2/models/{name}/infer.")
        texts = z or []
        points = read_descriptors(model, texts, max_rows)
        if len(points) > max(1, MOST_NUMBERS // model.field.theta_dim):
            raise Refusal(
                413,
                f"{len(points)} descriptors with {model.field.theta_dim:,} parameters each are more than "
                f"{MOST_NUMBERS:,} numbers: ask for {max(1, MOST_NUMBERS // model.field.theta_dim)} at a time.",
            )
        known = await batcher.in_thread(model.memory.recall, points)
        trust = {"X-Trust": ",".join(f"{value:.6g}" for value in known.trust[:100].tolist())}
        if format == "safetensors":
            content = as_safetensors(model, points, known)
        elif len(points) > 1:
            raise Refusal(400, f"ONNX holds the model at one z, but got {len(points)}: ask for one at a time.")
        else:
            content = await writer.write(texts[0] if texts else "")
        return Response(content, media_type="application/octet-stream", headers=trust)

    @app.get("/metrics", responses=openapi.METRICS | openapi.REFUSALS, response_class=Response)
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Admission(app, token, int(max_body * MEGABYTE), metrics.responded)


def _say_errors(app: FastAPI) -> None:
    """Give every error the protocol's form: {"error": one sentence}."""

    def error(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": sentence}, status, headers)

    @app.exception_handler(ThetafieldError)
    async def refused(_: Request, fault: ThetafieldError) -> JSONResponse:
        status = status_of(fault)
        return error(status, str(fault), {"connection": "close"} if status == 413 else None)

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, fault: HTTPException) -> JSONResponse:
        words = {404: "There is nothing at this path: see /openapi.json.", 405: "This path has another method."}
        return error(fault.status_code, words.get(fault.status_code, str(fault.detail)), dict(fault.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, fault: RequestValidationError) -> JSONResponse:
        first = fault.errors()[0]
        return error(400, f"The query's {'.'.join(map(str, first['loc'][1:]))} is wrong: {first['msg']}.")

    @app.exception_handler(Exception)
    async def failed(_: Request, fault: Exception) -> JSONResponse:
        return error(500, "The service failed, through no fault of yours: its log says how.")
