"""What the service says where it does not answer: a status of HTTP and one sentence."""

from thetafield.errors import ThetafieldError


class Refusal(ThetafieldError):
    """A request that is not answered, for a reason of its own that a client can mend.

    Args:
        status: Status of HTTP, 400 to 499.
        sentence: What came, what was expected, what to do.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def status_of(error: ThetafieldError) -> int:
    """Return the status of any error that is meant for the user: 400 where it has none of its own."""
    return error.status if isinstance(error, Refusal) else 400
