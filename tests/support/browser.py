"""A browser without scripts: cookies, links and forms of the page /ui."""

from html import parser
import typing
import urllib.parse

import webob

HOST = 'http://localhost'


class Form(typing.NamedTuple):
    """A form of a page: its method, where it goes, its fields."""

    method: str
    action: str
    fields: dict[str, str]


class Page(parser.HTMLParser):
    """What a user sees of a response, and what can be followed."""

    def __init__(self, response: webob.Response):
        super().__init__()
        self.response = response
        self.status = response.status_int
        self.headers = response.headers
        self.html = response.text
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._texts: list[str] = []
        self._outside: dict[str, dict[str, str]] = {}
        self.feed(self.html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == 'a':
            self.links.append(given.get('href') or '')
        elif tag == 'form':
            fields = self._outside.get(given.get('id') or '', {})
            self.forms.append(
                Form(given.get('method') or 'get', given.get('action') or '', fields)
            )
        elif given.get('type') == 'checkbox' and 'checked' not in given:
            pass  # not sent
        elif tag in ('input', 'select') and 'name' in given:
            unnamed = 'on' if given.get('type') == 'checkbox' else ''
            fields = (
                self._outside.setdefault(given['form'] or '', {})
                if 'form' in given
                else self.forms[-1].fields
            )
            fields[given['name'] or ''] = given.get('value') or unnamed

    def handle_data(self, data):
        self._texts.append(data)

    @property
    def text(self) -> str:
        """The text, with single spaces."""
        return ' '.join(' '.join(self._texts).split())

    def form(self, action: str) -> Form:
        """Return the form that is posted to a path."""
        for form in self.forms:
            if (form.method, form.action) == ('post', action):
                return form
        raise LookupError(f'{action} among {[f.action for f in self.forms]}')


class Browser:
    """A browser that follows redirections; `address` is where it is."""

    def __init__(self, app: typing.Any, host: str = HOST):
        self.app, self.host = app, host
        self.cookies: dict[str, str] = {}
        self.address = ''
        self.set_cookies: list[str] = []

    def send(
        self, method: str, path: str, body: str = '', **headers: str
    ) -> webob.Response:
        """Send one request, with the cookies."""
        request = webob.Request.blank(
            path,
            base_url=self.host,
            method=method,
            headers={name.replace('_', '-'): value for name, value in headers.items()},
        )
        if self.cookies:
            request.headers['Cookie'] = '; '.join(
                f'{name}={value}' for name, value in self.cookies.items()
            )
        if method == 'POST':
            request.body = body.encode()
            request.content_type = 'application/x-www-form-urlencoded'
        response = request.get_response(self.app)
        for line in response.headers.getall('Set-Cookie'):
            self.set_cookies.append(line)
            name, _, value = line.partition(';')[0].partition('=')
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        self.address = path
        return response

    def open(self, path: str, expect: int = 200) -> Page:
        return self._follow(self.send('GET', path), expect)

    def submit(self, form: Form, expect: int = 200, **fields: str) -> Page:
        """Send a form with other values for some fields."""
        body = urllib.parse.urlencode(form.fields | fields)
        return self._follow(
            self.send('POST', form.action, body, Origin=self.host), expect
        )

    def _follow(self, response: webob.Response, expect: int) -> Page:
        while response.status_int == 303:
            to = urllib.parse.urlsplit(response.headers['Location'])
            response = self.send('GET', to.path + (f'?{to.query}' if to.query else ''))
        assert response.status_int == expect, (
            self.address,
            response.status,
            Page(response).text[-500:],
        )
        return Page(response)
