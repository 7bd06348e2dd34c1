"""One streaming call: attachments in both directions, beside its request and response.

Each direction has a window. The sender counts the bytes it has sent (a null or empty attachment
counts as 1), the receiver reports how far it has read, and the sender holds back when the
difference fills the window.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from ..core.errors import PROTOCOL, TRANSPORT, YtError
from . import messages
from .bus import Part
from .messages import Feedback, Payload, Request

DEFAULT_WINDOW = 16 << 20


class Stream:
    """The attachments of one streaming request."""

    def __init__(self, request: Request, send: Callable[[list[Part]], None], drain: Any) -> None:
        self._request = request
        self._send = send
        self._drain = drain
        parameters = request.header.server_attachments_streaming_parameters
        self._window = parameters.window_size or DEFAULT_WINDOW
        self._changed = asyncio.Event()
        self._broken: YtError | None = None
        self._received: deque[Part] = deque()
        self._expected = 0
        self._read_position = 0
        self._sent = 0
        self._sent_position = 0
        self._taken_position = 0

    # The connection reports

    def on_payload(self, payload: Payload) -> None:
        if payload.sequence_number != self._expected:
            self.fail(YtError(PROTOCOL, "A streaming payload is out of order"))
            return
        self._expected += 1
        self._received.extend(payload.attachments)
        self._changed.set()

    def on_feedback(self, feedback: Feedback) -> None:
        """Take in a position; one that comes late is ignored.

        The Java client sends feedback from several threads. Source: core/rpc/stream.cpp,
        TAttachmentsOutputStream::HandleFeedback.
        """
        if feedback.read_position > self._sent_position:
            self.fail(YtError(PROTOCOL, f"Impossible read position {feedback.read_position}"))
            return
        self._taken_position = max(self._taken_position, feedback.read_position)
        self._changed.set()

    def fail(self, error: YtError) -> None:
        """Raise the error in every reader and writer of the stream."""
        self._broken = error
        self._changed.set()

    def abort(self) -> None:
        self.fail(YtError(TRANSPORT, "The stream was cancelled by its client"))

    # A method reads and writes

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the client's attachments until its null one."""
        while True:
            while not self._received:
                await self._wait()
            attachment = self._received.popleft()
            self._read_position += messages.streamed_size(attachment)
            self._send(messages.feedback(self._request, self._read_position))
            if attachment is None:
                return
            yield attachment

    async def finish(self) -> None:
        """End the server's direction of a method that only reads, and see the client's end.

        The native client fails if the answer comes before its own end was taken. A client that has
        taken everything is not waited for. Source: core/rpc/stream.cpp, AbortUnlessClosed.
        """
        self.end()
        while True:
            while self._received:
                attachment = self._received.popleft()
                if attachment is not None:
                    raise YtError(PROTOCOL, "Expected the end of the stream, got data")
                self._read_position += messages.streamed_size(attachment)
                self._send(messages.feedback(self._request, self._read_position))
                return
            if self._taken_position == self._sent_position:
                return
            await self._wait()

    async def write(self, attachment: bytes) -> None:
        """Send an attachment when the client's window has room for it."""
        while self._sent_position - self._taken_position >= self._window:
            await self._wait()
        await self._drain()
        self._put(attachment)

    def end(self) -> None:
        """End the server's direction."""
        self._put(None)

    def _put(self, attachment: Part) -> None:
        self._send(messages.payload(self._request, self._sent, [attachment]))
        self._sent += 1
        self._sent_position += messages.streamed_size(attachment)

    async def _wait(self) -> None:
        if self._broken:
            raise self._broken
        self._changed.clear()
        await self._changed.wait()
        if self._broken:
            raise self._broken
