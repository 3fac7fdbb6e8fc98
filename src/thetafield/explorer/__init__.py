"""The explorer: one page in which a person moves z and sees the model at z change."""

from thetafield.explorer.page import explorer_page
from thetafield.explorer.saved import Saved, open_saved

__all__ = ["Saved", "explorer_page", "open_saved"]
