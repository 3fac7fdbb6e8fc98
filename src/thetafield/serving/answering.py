"""Many questions, one call: predictions, probabilities, sets, intervals and trust for all their rows together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import torch
from torch import Tensor

from thetafield.errors import ThetafieldError
from thetafield.geometry.neighbours import Distinct
from thetafield.serving.memory import Remembering
from thetafield.serving.question import Question

DATATYPES = {"f": "FP64", "i": "INT64", "u": "INT64", "b": "BOOL"}  # of labels and answers; all others are text


@dataclass(frozen=True, eq=False)
class Answer:
    """The outputs of one question, by name, each with one row for each of its rows."""

    outputs: dict[str, np.ndarray]

    def as_json(self, model_name: str, request_id: str | None) -> bytes:
        """Return the response of the protocol."""
        outputs = [
            {"name": name, "shape": values.shape, "datatype": datatype_of(values.dtype), "data": _plain(values)}
            for name, values in self.outputs.items()
        ]
        content = {"model_name": model_name, "id": request_id, "outputs": outputs}
        if request_id is None:
            del content["id"]
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def answer_all(model: Remembering, questions: Sequence[Question]) -> list[Answer | ThetafieldError]:
    """Answer all questions in one call; where one has no answer, the others have theirs all the same."""
    try:
        return list(_together(model, questions))
    except ThetafieldError as error:
        if len(questions) == 1:
            return [error]
    half = len(questions) // 2
    return answer_all(model, questions[:half]) + answer_all(model, questions[half:])


@torch.no_grad()
def _together(model: Remembering, questions: Sequence[Question]) -> list[Answer]:
    x = torch.cat([question.x for question in questions]) if len(questions) > 1 else questions[0].x
    z = torch.cat([question.z for question in questions]) if len(questions) > 1 else questions[0].z
    distinct = Distinct.of(z)
    known = model.memory.recall(distinct.points)
    trust, expected = known.trust[distinct.group].double(), known.expected[distinct.group]
    answers = model.row_outputs(x, z).cpu()
    sizes = [len(question.x) for question in questions]
    logs = torch.log_softmax(answers, 1) if model.classes is not None else answers
    labels = answers[:, 0] if model.squeezed else answers
    probability = None
    if model.classes is not None:
        labels, probability = answers.argmax(1), torch.softmax(answers, 1)
    found, start = [], 0
    for question, size in zip(questions, sizes, strict=True):
        part = slice(start, start + size)
        start += size
        outputs: dict[str, np.ndarray] = {}
        for name in question.outputs:
            if name == "prediction":
                some = labels[part].numpy()
                outputs[name] = some if model.classes is None else model.classes[some]
            elif name == "probability":
                assert probability is not None
                outputs[name] = probability[part].numpy()
            elif name == "set":
                outputs[name] = (-logs[part] <= _threshold(model, question)).numpy()
            elif name == "interval":
                outputs[name] = _interval(answers[part], expected[part] * _threshold(model, question), model.squeezed)
            else:
                outputs[name] = trust[part].numpy()
        found.append(Answer(outputs))
    return found


def _threshold(model: Remembering, question: Question) -> float:
    assert model.conformal is not None
    return model.conformal.threshold(question.coverage)


def _interval(answers: Tensor, half: Tensor, squeezed: bool) -> np.ndarray:
    ends = torch.stack([answers - half[:, None], answers + half[:, None]], -1).numpy()
    return ends[:, 0] if squeezed else ends


def datatype_of(dtype: np.dtype) -> str:
    """Return the protocol's name for a type of labels or answers."""
    return DATATYPES.get(dtype.kind, "BYTES")


def _plain(values: np.ndarray) -> np.ndarray | list[str]:
    """Return entries in row-major order, as orjson writes them."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat if flat.dtype.kind in DATATYPES else [str(label) for label in flat.tolist()]
