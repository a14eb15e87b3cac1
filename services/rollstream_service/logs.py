"""Logs: one JSON object a line on standard output, with time, level, role, member and what happened."""

from __future__ import annotations

import logging
import sys
from typing import Literal, TypeAlias

import structlog

__all__ = ["LogFormat", "LogLevel", "configure"]

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["json", "text"]
LEVELS: dict[LogLevel, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(
    *, role: str, member: str, log_level: LogLevel = "info", log_format: LogFormat = "json"
) -> structlog.stdlib.BoundLogger:
    """Send this process' log lines, and those of the libraries that it uses, to standard output.

    Returns:
        The logger of the service, bound to its role and member name.
    """
    level = LEVELS[log_level]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("uvicorn.access", "httpx", "kubernetes", "matplotlib"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    logger: structlog.stdlib.BoundLogger = structlog.get_logger("rollstream").bind(role=role, member=member)
    return logger
