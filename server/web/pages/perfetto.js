// SPDX-License-Identifier: Apache-2.0
// Hands a trace to Perfetto's page, which a reader opens in a window of its own: the events go from window to window,
// and not over the network.

const PERFETTO = 'https://ui.perfetto.dev';
const KNOCK_MS = 100, PATIENCE_MS = 60000;

/* Fetches URL (a trace in Chrome's JSON) and gives it to the page once that answers; resolves when it was handed over.
 * Called at once by the reader's click, or the browser opens no window. */
export async function toPerfetto(url, title, signal) {
  const page = window.open(PERFETTO);
  if (!page) throw new Error('The browser opened no window for Perfetto: allow it for this page.');
  const [buffer] = await Promise.all([
    fetch(url, {signal}).then((r) => {
      if (!r.ok) throw new Error(`The trace could not be fetched (${r.status}).`);
      return r.arrayBuffer();
    }),
    answers(page, signal)
  ]);
  page.postMessage({perfetto: {buffer, title, fileName: `${title.replace(/[^\w.-]+/g, '_')}.json`}}, PERFETTO, [buffer]);
}

// Perfetto answers PING with PONG when it listens.
function answers(page, signal) {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const end = (fn, value) => {
      clearInterval(timer);
      removeEventListener('message', onMessage);
      fn(value);
    };
    const onMessage = (e) => {
      if (e.origin === PERFETTO && e.source === page && e.data === 'PONG') end(resolve);
    };
    const timer = setInterval(() => {
      if (signal.aborted || page.closed || performance.now() - begin > PATIENCE_MS)
        end(reject, new Error('Perfetto’s page did not answer: it needs the internet.'));
      else
        page.postMessage('PING', PERFETTO);
    }, KNOCK_MS);
    addEventListener('message', onMessage);
  });
}
