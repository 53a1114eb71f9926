// SPDX-License-Identifier: Apache-2.0
// trace_viewer@'s JSON, as it arrives: the list of events is cut between elements and parsed piece by
// piece, so that neither the text nor the objects of a large answer are ever in memory as a whole.

import {TraceBuilder} from './model.js';

const OPEN = '"traceEvents":[';
const CUT = '},{"';  // occurs between elements only: quotes inside a string are escaped
const PIECE = 1 << 20;

export async function parse(body, onBytes) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const builder = new TraceBuilder();
  let text = '', head = null, seen = 0;
  const take = (piece) => {
    for (const e of JSON.parse(`[${piece}]`))
      if (e && typeof e === 'object') builder.add(e);
  };
  for (;;) {
    const {done, value} = await reader.read();
    if (value) {
      seen += value.length;
      text += decoder.decode(value, {stream: true});
      if (onBytes) onBytes(seen);
    }
    if (done) break;
    if (text.length < PIECE) continue;
    if (head === null) {
      const at = text.indexOf(OPEN);
      if (at < 0) continue;
      head = JSON.parse(`${text.slice(0, at)}"traceEvents":[]}`);
      text = text.slice(at + OPEN.length);
    }
    const cut = text.lastIndexOf(CUT);
    if (cut < 0) continue;
    take(text.slice(0, cut + 1));
    text = text.slice(cut + 2);
  }
  text += decoder.decode();
  const rest = JSON.parse(head === null ? text || '{}' : `{"traceEvents":[${text}`);
  for (const e of rest.traceEvents || [])
    if (e && typeof e === 'object') builder.add(e);
  return builder.finish(head || rest);
}
