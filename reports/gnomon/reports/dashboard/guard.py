"""The door in front of all that the dashboard's HTTP server serves, and the base of its own pages.

The guard is a router: it hands a request on to the application behind it, Bokeh's included, or answers it itself.

Contents: Guard, PageHandler.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from tornado import httputil, routing, web

from gnomon.reports.dashboard.access import Access, Asked, Verdict
from gnomon.reports.dashboard.context import Context

__all__ = ["Guard", "PageHandler"]

_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'"
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><meta name="viewport" content="width=device-width">
<style>body {{ font: 16px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 40rem; padding: 0 1rem }}
:root {{ color-scheme: light dark }}</style></head>
<body><main><h1>{title}</h1><p>{text}</p></main></body></html>
"""

_TITLES = {401: "A token is needed", 403: "Refused", 404: "There is no such page", 405: "Only reading is possible"}


def sentence_page(title: str, text: str) -> str:
    """A page of one sentence."""
    return _PAGE.format(title=html.escape(title), text=html.escape(text))


def _protect(handler: web.RequestHandler) -> None:
    handler.set_header("X-Content-Type-Options", "nosniff")
    handler.set_header("Referrer-Policy", "no-referrer")
    handler.set_header("Cache-Control", "no-store")
    handler.set_header("Content-Security-Policy", _POLICY)


class PageHandler(web.RequestHandler):
    """The base of the dashboard's pages: answers GET and HEAD, protected by headers.

    Rules give it ``context``; ``get`` is the page's to write.
    """

    SUPPORTED_METHODS = ("GET", "HEAD")

    def initialize(self, context: Context, **options: Any) -> None:
        """Take what the rule says; what it says beyond the context is in ``given``."""
        self.context = context
        self.given = options

    def set_default_headers(self) -> None:
        """Protect every answer, errors included."""
        self.set_header("Server", "gnomon")
        _protect(self)

    async def head(self, *args: str, **kwargs: str) -> None:
        """Likewise, without the body."""
        result: Any = self.get(*args, **kwargs)
        if result is not None:
            await result

    def send_json(self, value: Any, status: int = 200) -> None:
        """Answer with JSON; what is no number becomes null."""
        self.set_status(status)
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False))

    def send_page(self, page: str, status: int = 200) -> None:
        """Answer with a page of HTML."""
        self.set_status(status)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log what is our fault; a bad request is told to who made it."""
        if not isinstance(value, web.HTTPError):
            super().log_exception(typ, value, tb)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Errors are pages of a sentence, or JSON where JSON was asked for; nothing of our insides."""
        text = {404: "Nothing lies at this address.", 500: "The dashboard could not make this page; its log says why."}
        reason = str(kwargs.get("reason") or text.get(status_code, self._reason))
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, web.HTTPError) and error.log_message and status_code != 500:
            reason = error.log_message % error.args if error.args else error.log_message
        if self.request.path.endswith(".json"):
            self.send_json({"error": reason}, status_code)
        else:
            self.send_page(sentence_page(_TITLES.get(status_code, f"Error {status_code}"), reason), status_code)


def _plain(value: Any) -> Any:
    """The value as JSON has it: keys are text, and NaN and infinities are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


class NotFound(PageHandler):
    """Where nothing lies."""

    def get(self, *args: str) -> None:
        """Say so."""
        raise web.HTTPError(404)


class _Refusal(web.RequestHandler):
    """What a request gets that the guard doesn't let in."""

    def initialize(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def prepare(self) -> None:
        """Answer, whatever the method is."""
        verdict = self._verdict
        _protect(self)
        self.set_header("Server", "gnomon")
        self.set_status(verdict.status)
        if verdict.status == 401:
            self.set_header("WWW-Authenticate", 'Bearer realm="gnomon dashboard"')
        if verdict.status == 503:
            self.set_header("Retry-After", "30")
        if self.request.path.endswith(".json"):
            self.finish(json.dumps({"error": verdict.text}))
        else:
            title = "Too many views are open" if verdict.status == 503 else _TITLES.get(verdict.status, "Refused")
            self.finish(sentence_page(title, verdict.text))

    def check_xsrf_cookie(self) -> None:
        """Nothing is changed here."""


class _Admission(web.RequestHandler):
    """Sets the cookie of who came with the token, and sends the browser on without it."""

    def initialize(self, access: Access, prefix: str) -> None:
        self._access = access
        self._prefix = prefix

    def get(self) -> None:
        """Send the browser on."""
        _protect(self)
        secure = self.request.protocol == "https" or self.request.headers.get("X-Forwarded-Proto", "") == "https"
        self.set_cookie(
            self._access.cookie_name, self._access.cookie_value, path=self._prefix or "/", httponly=True,
            samesite="Lax", secure=secure,
        )  # fmt: skip
        rest = [
            (name, value.decode("utf-8", "replace"))
            for name, values in self.request.query_arguments.items()
            if name != "token"
            for value in values
        ]
        path = "/" + self.request.path.lstrip("/")  # never //host
        self.redirect(path + ("?" + urlencode(rest) if rest else ""), status=303)


class Guard(routing.Router):
    """Judges each request and hands it on.

    Args:
        behind: gives the application with all pages.
        access: decides.
        prefix: of all paths.
        full: whether a path that would open another view has to wait; the text to show then.
    """

    def __init__(
        self,
        behind: Callable[[], web.Application],
        access: Access,
        prefix: str,
        full: Callable[[str], str] | None = None,
    ) -> None:
        self._behind = behind
        self._access = access
        self._prefix = prefix
        self._full = full or (lambda path: "")
        self._own = web.Application([])

    def find_handler(self, request: Any, **kwargs: Any) -> httputil.HTTPMessageDelegate | None:
        """Who answers a request."""
        path = request.path.removeprefix(self._prefix) if self._prefix else request.path
        token = request.query_arguments.get("token")
        headers = request.headers
        verdict = self._access.judge(
            Asked(
                method=request.method or "",
                path=path,
                host=headers.get("Host", ""),
                origin=headers.get("Origin"),
                cookie=headers.get("Cookie", ""),
                authorization=headers.get("Authorization", ""),
                token=token[-1].decode("utf-8", "replace") if token else None,
                websocket=headers.get("Upgrade", "").lower() == "websocket",
            )
        )
        if not verdict.status and not verdict.admit:
            full = self._full(path)
            if full:
                verdict = Verdict(503, full)
        if verdict.status:
            return self._own.get_handler_delegate(request, _Refusal, {"verdict": verdict})
        if verdict.admit and request.method == "GET" and not path.endswith(".json") and path != "/metrics":
            target = {"access": self._access, "prefix": self._prefix}
            return self._own.get_handler_delegate(request, _Admission, target)
        return self._behind().find_handler(request)
