"""An HTTP client of an application under test, without a socket; calls block."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx


class AsgiClient:
    """Asks an ASGI application; a fault of the application is its answer 500, not an exception of the client."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)

    def request(self, method: str, address: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://monitor") as client:
                return await client.request(method, address, headers=headers)

        return asyncio.run(ask())

    def get(self, address: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return self.request("GET", address, headers)

    def head(self, address: str) -> httpx.Response:
        return self.request("HEAD", address)
