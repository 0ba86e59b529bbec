"""The exceptions of the store."""

from __future__ import annotations

_NAMES = {
    -1: "ENOMEM",
    -2: "ENOTFOUND",
    -3: "ECONFLICT",
    -4: "EINVAL",
    -5: "ELIMIT",
    -6: "EIO",
    -7: "EFULL",
    -8: "ECORRUPT",
    -9: "EVERSION",
    -10: "EBUSY",
    -11: "EUNAVAILABLE",
    -12: "EEXISTS",
    -13: "EUNSUPPORTED",
    -14: "ECLOSED",
    -15: "EACCESS",
    -16: "ETAKEN",
}


class HeddleError(Exception):
    """A store operation failed; nothing was changed.

    ``code`` is the number of ``heddle.h`` and ``name`` its name, such as ``"EUNAVAILABLE"``.
    """

    code: int
    name: str

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.name = _NAMES.get(code, "EUNKNOWN")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.code)


class HeddleValueError(HeddleError, ValueError):
    """An invalid argument or URL (``EINVAL``)."""


def make_error(code: int, text: str) -> HeddleError:
    """Called by the extension."""
    return (HeddleValueError if code == -4 else HeddleError)(text, code)
