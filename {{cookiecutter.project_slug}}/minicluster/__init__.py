"""An in-memory YTsaurus cluster that speaks the HTTP and the RPC protocol, for development."""

#: That of ytstream/, with which it is vendored.
__version__ = "1.0.0"
