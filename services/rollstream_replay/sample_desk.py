"""Answers requests for samples, whichever way they come: in one piece when the limiter allows, otherwise when it does."""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus

from rollstream.errors import RollstreamError
from rollstream.replay.samples import SampleRequest, decode_request, encode_reply
from rollstream_replay.problems import describe_problem
from rollstream_replay.sample_protocol import problem_reply, reply_of
from rollstream_replay.served_table import ServedTable
from rollstream_replay.shard_server import ShardServer

__all__ = ["SampleDesk"]


class SampleDesk:
    """The `SampleAnswers` of a shard."""

    def __init__(self, server: ShardServer) -> None:
        self._server = server

    def answer(self, table_id: str, body: bytes) -> bytes | Awaitable[bytes]:
        """The whole reply, or a way to wait for it."""
        try:
            request = decode_request(body)
            table = self._server.table(table_id)
            reply = table.sample_now(request)
        except RollstreamError as error:
            return _problem(error)
        return self._later(table, request) if reply is None else reply_of(encode_reply(reply))

    def after(self, table_id: str) -> None:
        """Samples may have let writers go on."""
        self._server.advance_table(table_id)

    async def _later(self, table: ServedTable, request: SampleRequest) -> bytes:
        try:
            return reply_of(encode_reply(await table.sample_later(request)))
        except RollstreamError as error:
            return _problem(error)


def _problem(error: RollstreamError) -> bytes:
    told = describe_problem(error)
    return problem_reply(told.status, HTTPStatus(told.status).phrase, told.body, told.headers)
