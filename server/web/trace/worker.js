// SPDX-License-Identifier: Apache-2.0
// Fetches and parses a trace away from the page's thread.

import {parse} from './parse.js';
import {buffers} from './model.js';
import {failure, warnings} from '../lib/api.js';

const running = new Map();

self.onmessage = async ({data: {id, url, cancel}}) => {
  if (cancel) {
    running.get(id)?.abort();
    return;
  }
  const abort = new AbortController();
  running.set(id, abort);
  try {
    const response = await fetch(url, {signal: abort.signal});
    if (!response.ok) throw await failure(response);
    let told = 0;
    const model = await parse(response.body, (bytes) => {
      const now = performance.now();
      if (now - told > 100) {
        told = now;
        self.postMessage({id, bytes});
      }
    });
    self.postMessage({id, model, warnings: warnings(response)}, buffers(model));
  } catch (e) {
    self.postMessage({id, error: {name: e.name, message: e.message, code: e.code, status: e.status}});
  } finally {
    running.delete(id);
  }
};
