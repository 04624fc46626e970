"""A proxy before a server that spoils requests on demand: the bad weather of the tests.

Every request gets a connection of its own, so that a fault set now meets the next request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

ERROR = b"<?xml version='1.0'?><Error><Code>%s</Code></Error>"
CODES = {500: b"InternalError", 503: b"SlowDown"}
PIECE = 65536


@dataclass
class Fault:
    """What happens to a request.

    Attributes:
        refuse: The connection is reset at once.
        hang: The request is read and never answered.
        status: The proxy answers with this HTTP status.
        cut_up: The connection is reset after so many bytes of the request.
        cut_down: The connection is reset after so many bytes of the answer.
        flip: The last byte of the request's body is changed on its way.
        only: Only requests whose first line holds this are met.
        skip: So many requests pass before the first that is met.
        every: Of the others, one in so many is met.
        times: So many requests are met; all, if negative.
        call: Called when a request is met; nothing else need happen to it.
    """

    refuse: bool = False
    hang: bool = False
    status: int = 0
    cut_up: int = -1
    cut_down: int = -1
    flip: bool = False
    only: str = ""
    skip: int = 0
    every: int = 1
    times: int = -1
    call: Callable[[], None] = lambda: None


class Proxy:
    """A proxy in a thread of its own, while it is used as a context.

    Args:
        port: Where the server listens on this machine.

    Attributes:
        url: Where the proxy listens.
        met: Requests that met a fault.
        requests: First lines of the requests since a fault was set.
    """

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._fault: Fault | None = None
        self.met = self._seen = 0
        self.requests: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        serving = asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @contextmanager
    def spoiling(self, fault: Fault) -> Iterator[None]:
        """Let requests meet a fault while the block lasts."""
        self.met = self._seen = 0
        self.requests.clear()
        self._fault = fault
        try:
            yield
        finally:
            self._fault = None

    def _take(self, line: str) -> Fault:
        """The fault this request meets."""
        fault = self._fault
        if fault is None or fault.only not in line:
            return Fault()
        self._seen += 1
        turn = self._seen - fault.skip
        if turn < 1 or (turn - 1) % fault.every or self.met == fault.times:
            return Fault()
        self.met += 1
        fault.call()
        return fault

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await self._request(reader, writer)
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        self.requests.append(line.decode())
        fault = self._take(line.decode())
        if fault.refuse:
            writer.transport.abort()
            return
        headers = [each for each in rest.split(b"\r\n") if each]
        length = 0
        for each in list(headers):
            name, _, value = each.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() in (b"expect", b"connection"):
                headers.remove(each)
                if name.lower() == b"expect":
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if fault.hang:
            await reader.read(-1)  # until the client gives up
            return
        if fault.status:
            await reader.readexactly(length)
            body = ERROR % CODES[fault.status]
            writer.write(
                b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                % (fault.status, len(body), body)
            )
            await writer.drain()
            return
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            head = b"\r\n".join([line, *headers, b"Connection: close", b"", b""])
            to_server.write(head)
            await self._send_up(reader, to_server, length, fault)
            await self._send_down(from_server, writer, fault)
        except ConnectionAbortedError:
            writer.transport.abort()
            to_server.transport.abort()
        finally:
            to_server.close()

    async def _send_up(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, length: int, fault: Fault
    ) -> None:
        sent = 0
        while sent < length:
            data = await reader.readexactly(min(PIECE, length - sent))
            sent += len(data)
            if 0 <= fault.cut_up <= sent:
                raise ConnectionAbortedError
            if fault.flip and sent == length:
                data = data[:-1] + bytes([data[-1] ^ 1])
            server.write(data)
            await server.drain()

    async def _send_down(
        self, server: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault
    ) -> None:
        sent = 0
        while data := await server.read(PIECE):
            sent += len(data)
            if 0 <= fault.cut_down <= sent:
                writer.write(data[: len(data) - (sent - fault.cut_down)])
                await writer.drain()
                raise ConnectionAbortedError
            writer.write(data)
            await writer.drain()
