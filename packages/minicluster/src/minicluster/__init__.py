"""An in-memory YTsaurus cluster that speaks the HTTP and the RPC protocol, for development."""

__version__ = "1.0.0"
