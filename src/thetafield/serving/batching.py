"""Requests that come at the same time are answered together: one call for sixty costs little more than one for one."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from thetafield.errors import ThetafieldError
from thetafield.serving.answering import Answer
from thetafield.serving.question import Question

Answers = list[Answer | ThetafieldError]
MOST_ROWS = 2**12  # of one call, so that nobody waits long for others
# Numbers of the inputs that are answered in place, in a millisecond or so. More of them go to a thread: the service
# stays awake, but each of torch's many short calls then waits until the other thread lets go of the interpreter.
FEW_NUMBERS = 2**16
FEW_PLACES = 512  # rows, which may each have a head of their own


class Batcher:
    """Collects questions while others are answered; waits for nobody.

    Args:
        answer: Answers several questions in one call.
        on_batch: Told the number of rows of each call.
    """

    def __init__(self, answer: Callable[[Sequence[Question]], Answers], on_batch: Callable[[int], None]) -> None:
        self._answer, self._on_batch = answer, on_batch
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._large: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._called = self._busy = False
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")

    async def ask(self, question: Question) -> Answer:
        """Return the answer to a question, which may be answered together with others.

        Raises:
            ThetafieldError: It has none.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        if question.x.numel() > FEW_NUMBERS or len(question.z) > FEW_PLACES:
            self._large.append((question, future))
            if not self._busy:
                self._busy = True
                self._task = loop.create_task(self._answer_large())  # kept: a loop forgets tasks nobody holds
        else:
            self._waiting.append((question, future))
            if not self._called:  # after all that came at the same time have been read
                self._called = True
                loop.call_soon(self._answer_waiting)
        return await future

    async def in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Run something long apart from the service's own thread, one at a time."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False)

    def _answer_waiting(self) -> None:
        self._called = False
        batch = _take(self._waiting)
        if self._waiting:
            self._called = True
            asyncio.get_running_loop().call_soon(self._answer_waiting)
        self._deliver(batch, self._safely([question for question, _ in batch]))

    async def _answer_large(self) -> None:
        while self._large:
            batch = _take(self._large)
            self._deliver(batch, await self.in_thread(self._safely, [question for question, _ in batch]))
        self._busy = False

    def _safely(self, questions: list[Question]) -> Answers | Exception:
        try:
            return self._answer(questions)
        except Exception as error:  # a fault of ours: all who wait are told, or they would wait for ever
            return error

    def _deliver(self, batch: list[tuple[Question, asyncio.Future[Answer]]], answers: Answers | Exception) -> None:
        self._on_batch(sum(len(question.x) for question, _ in batch))
        each = [answers] * len(batch) if isinstance(answers, Exception) else answers
        for (_, future), answer in zip(batch, each, strict=True):
            if future.done():  # the client has gone
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


def _take(waiting: deque[tuple[Question, asyncio.Future[Answer]]]) -> list[tuple[Question, asyncio.Future[Answer]]]:
    """Return the first question, and those after it while their rows are few."""
    batch, rows = [waiting.popleft()], 0
    rows = len(batch[0][0].x)
    while waiting and rows + len(waiting[0][0].x) <= MOST_ROWS:
        batch.append(waiting.popleft())
        rows += len(batch[-1][0].x)
    return batch
