"""An in-memory YTsaurus cluster that speaks the HTTP and the RPC protocol, for development."""

from .version import __version__

__all__ = ["__version__"]
