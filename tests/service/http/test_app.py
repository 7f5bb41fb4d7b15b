"""One worker without connections: what a request gets that takes too long."""

import asyncio
import json
from pathlib import Path

from driftbandits.service.http.app import Service
from driftbandits.service.http.protocol import Request, Response
from driftbandits.service.store.store import Store


def test_a_request_that_is_given_up_is_told_so(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'bandits.sqlite'}")
    service = Service(store, "one", "http://one", open_to_all=True)

    async def hang(*_: object) -> Response:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    endpoint = service._endpoints["/healthz"]["GET"]
    service._endpoints["/healthz"]["GET"] = endpoint._replace(handler=hang)

    async def main() -> Response:
        request = Request("GET", b"/healthz", {b"host": b"localhost"})
        task = asyncio.create_task(service.respond(request))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    response = asyncio.run(main())
    store.close()
    assert response.status == 504
    assert response.headers == (("retry-after", "1"),)
    assert json.loads(response.body)["error"]["code"] == "no_answer_in_time"
