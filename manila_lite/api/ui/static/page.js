'use strict';
// Refreshes what is marked as live, and copies texts.
(() => {
  const say = (text) => { document.getElementById('said').textContent = text; };

  // A region that is being used is left alone: typing, an open form, rows
  // or text that are selected.
  const isUsed = (region) => {
    const selection = document.getSelection();
    return document.hidden
      || (region.contains(document.activeElement)
        && document.activeElement.matches('input, select, textarea, summary'))
      || region.querySelector('details[open], input:checked')
      || (selection && !selection.isCollapsed
        && region.contains(selection.anchorNode));
  };

  // Puts the focus where it was, as far as the new content has the place.
  const placeOf = (region) => {
    const focused = document.activeElement;
    if (!region.contains(focused)) { return -1; }
    return [...region.querySelectorAll('a, button, [tabindex]')].indexOf(focused);
  };

  const refresh = async () => {
    const region = document.getElementById('live');
    if (isUsed(region)) { return; }
    const answer = await fetch(location.href, { credentials: 'same-origin' });
    if (answer.redirected) { location.reload(); return; }
    if (!answer.ok) { return; }
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const found = page.getElementById('live');
    if (!found || isUsed(region)) { return; }
    const place = placeOf(region);
    region.replaceChildren(...found.childNodes);
    if (place >= 0) {
      const next = region.querySelectorAll('a, button, [tabindex]')[place];
      if (next) { next.focus({ preventScroll: true }); }
    }
  };

  const repeat = (seconds) => {
    setTimeout(async () => {
      try { await refresh(); } catch { /* the next one may succeed */ }
      repeat(seconds);
    }, seconds * 1000);
  };

  const copy = async (button) => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      say('Copied');
    } catch {
      const text = document.getElementById(button.dataset.of);
      document.getSelection().selectAllChildren(text);
      say(document.execCommand('copy') ? 'Copied' : 'Selected, copy it by the keyboard');
    }
  };

  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-copy]');
    if (button) { copy(button); }
  });

  const live = document.getElementById('live');
  if (live && live.dataset.refresh) { repeat(Number(live.dataset.refresh)); }
})();
