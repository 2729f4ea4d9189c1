"""A real browser: Chromium without a window, and the checks of axe-core.

`tools/install-browser` installs both.
"""

from collections.abc import Callable, Iterator
import contextlib
import pathlib
import shutil
import typing

from selenium import webdriver
from selenium.common import exceptions
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.support import requirements

AXE = (
    pathlib.Path(__file__).resolve().parents[2]
    / 'build/browser/node_modules/axe-core/axe.min.js'
)
PATIENCE = 60
"""Seconds to wait for a condition, far more than it takes."""

_ARGUMENTS = (
    '--headless=new',
    '--no-sandbox',  # tests run as root
    '--disable-dev-shm-usage',
    '--disable-gpu',
    '--window-size=1280,1000',
)
_RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document).then(
  (found) => done(found.violations.map((one) => [
    one.id, one.help, one.nodes.map((node) => node.html).slice(0, 5)])),
  (error) => done([['axe', String(error), []]]));
"""
_WIDE = """
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= width) { return []; }
return [...document.body.querySelectorAll('*')]
  .filter((one) => one.getBoundingClientRect().right > width + 1
    && !one.closest('.scroll, .unseen'))
  .map((one) => one.outerHTML.slice(0, 200)).slice(-5);
"""
_RACES = (exceptions.NoSuchElementException, exceptions.StaleElementReferenceException)


def require() -> None:
    """Skip the test without a browser; fail it if CI is set."""
    for program in ('chromium', 'chromedriver'):
        if shutil.which(program) is None:
            requirements.missing(f'{program}: run tools/install-browser')
    if not AXE.exists():
        requirements.missing('axe-core: run tools/install-browser')


@contextlib.contextmanager
def started(folder: pathlib.Path) -> Iterator['Chromium']:
    """Run a browser with a profile in this folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium') or ''
    for argument in (*_ARGUMENTS, f'--user-data-dir={folder}/profile'):
        options.add_argument(argument)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    driver = webdriver.Chrome(
        options, webdriver.ChromeService(shutil.which('chromedriver'))
    )
    try:
        yield Chromium(driver)
    finally:
        driver.quit()


class Chromium:
    """What a user does in the browser; every step waits for its elements."""

    def __init__(self, driver: webdriver.Chrome):
        self.driver = driver

    def wait(self, condition: Callable[[], typing.Any]) -> typing.Any:
        """Wait until a condition is true; return its value."""
        return WebDriverWait(
            self.driver, PATIENCE, 0.1, ignored_exceptions=_RACES
        ).until(lambda _: condition())

    def open(self, url: str) -> None:
        self.driver.get(url)

    @property
    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, 'body').text

    def see(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.wait(lambda: text in self.text)

    def find(self, selector: str) -> typing.Any:
        """Return the first element that is displayed, when there is one."""
        return self.wait(lambda: self._find(selector))

    def _find(self, selector: str) -> typing.Any:
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return next((one for one in found if one.is_displayed()), None)

    def click(self, selector: str) -> None:
        self._use(lambda: self._find(selector), lambda one: one.click())

    def submit(self, selector: str) -> None:
        """Submit the form that an element is in."""
        self._use(lambda: self._find(selector), lambda one: one.submit())

    def type(self, selector: str, text: str) -> None:
        def type_text(element: typing.Any) -> None:
            element.clear()
            element.send_keys(text)

        self._use(lambda: self._find(selector), type_text)

    def choose(self, selector: str, value: str) -> None:
        """Choose the option with a value."""
        self._use(
            lambda: self._find(selector), lambda one: Select(one).select_by_value(value)
        )

    def _use(
        self, find: Callable[[], typing.Any], use: Callable[[typing.Any], None]
    ) -> None:
        """Find and use an element, again if the page is refreshed between."""

        def attempt() -> bool:
            element = find()
            if element is not None:
                use(element)
            return element is not None

        self.wait(attempt)

    def unfold(self, summary: str) -> None:
        """Open a part of the page by its summary, with the keyboard."""

        def find() -> typing.Any:
            return next(
                (
                    one
                    for one in self.driver.find_elements(By.TAG_NAME, 'summary')
                    if one.text == summary
                ),
                None,
            )

        self._use(find, lambda one: one.send_keys(Keys.ENTER))

    def press(self, key: str) -> None:
        """Press a key, wherever the focus is."""
        ActionChains(self.driver).send_keys(key).perform()

    @property
    def focused(self) -> typing.Any:
        """The element that has the focus."""
        return self.driver.switch_to.active_element

    @property
    def said(self) -> str:
        """What a screen reader was told last."""
        return self.driver.find_element(By.ID, 'said').get_attribute('textContent')

    def prefer(self, scheme: str) -> None:
        """Make the system of the user light or dark."""
        self.driver.execute_cdp_cmd(
            'Emulation.setEmulatedMedia',
            {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]},
        )

    def resize(self, width: int) -> None:
        """Give the page a width; windows cannot be as narrow as a phone."""
        self.driver.execute_cdp_cmd(
            'Emulation.setDeviceMetricsOverride',
            {'width': width, 'height': 1000, 'deviceScaleFactor': 1, 'mobile': False},
        )

    def overflow(self) -> list[str]:
        """Return what makes the page wider than its window."""
        return self.driver.execute_script(_WIDE)

    def violations(self) -> list:
        """Return what axe-core finds on the page."""
        self.driver.execute_script(AXE.read_text(encoding='utf-8'))
        return self.driver.execute_async_script(_RUN_AXE)

    def complaints(self) -> list[str]:
        """Return what the browser has logged since the last call."""
        return [
            entry['message']
            for entry in self.driver.get_log('browser')
            if entry['level'] in ('WARNING', 'SEVERE')
        ]
