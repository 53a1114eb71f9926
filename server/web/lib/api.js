// SPDX-License-Identifier: Apache-2.0
// The daemon's JSON API.  Addresses are relative to this file, so that it works below any prefix and in
// workers.

const BASE = new URL('../../api/v1/', import.meta.url);
const KEPT = 8;  // parsed answers kept for going back and forth

const kept = new Map();  // address -> {etag, data}

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const ADVICE = {
  NOT_FOUND:
      'It may have been removed, or the link is for another log directory. Go back to the list of sessions.',
  NO_PAGE: 'The navigation lists the pages.',
  INVALID_ARGUMENT: 'Change the choice above and try again.',
  DATA_LOSS: 'The file is damaged: capture it again, or copy it again from where it was made.',
  ABORTED: 'The file was still being written. Wait until the capture has ended and try again.',
  RESOURCE_EXHAUSTED: 'The server has more work than it may do at once. Try again in a moment.',
  DEADLINE_EXCEEDED: 'The request took longer than allowed. Try again: converted hosts are kept.',
  UNAVAILABLE: 'The server is not ready yet, or about to stop. Try again in a moment.',
  UNREACHABLE: 'The server has stopped, or the network does not reach it. Try again when it is back.',
  UNIMPLEMENTED: 'This server does not have that tool.',
};

export function advice(error) {
  return ADVICE[error.code] || '';
}

export function address(path, query) {
  const url = new URL(path, BASE);
  for (const [key, value] of query || []) url.searchParams.append(key, value);
  return url;
}

// ApiError of an answer that is not 2xx.
export async function failure(response) {
  let code = response.status === 404 ? 'NOT_FOUND' : 'UNKNOWN';
  let message = `The server answered ${response.status} ${response.statusText}.`;
  try {
    const {error} = JSON.parse(await response.text());
    if (error && typeof error.code === 'string') code = error.code;
    if (error && typeof error.message === 'string' && error.message) message = error.message;
  } catch { /* a proxy's page: the status says enough */
  }
  return new ApiError(response.status, code, message);
}

// Warnings of an answer, in words.  One header each, percent-encoded; fetch joins them with ", ".
export function warnings(response) {
  const all = response.headers.get('Xplaned-Warning');
  if (!all) return [];
  return all.split(', ').map((w) => {
    try {
      return decodeURIComponent(w);
    } catch {
      return w;
    }
  });
}

async function request(url, signal) {
  let response;
  try {
    response = await fetch(url, {signal, headers: {Accept: 'application/json'}});
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new ApiError(0, 'UNREACHABLE', 'The server cannot be reached.');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

// {data, warnings, source} of one address; parsed once as long as its ETag stays.
export async function get(url, signal) {
  const response = await request(url, signal);
  const about = {warnings: warnings(response), source: response.headers.get('Xplaned-Source') || ''};
  const etag = response.headers.get('ETag');
  const old = kept.get(url.href);
  if (old && etag && old.etag === etag) {
    response.body?.cancel();
    kept.delete(url.href);
    kept.set(url.href, old);
    return {data: old.data, ...about};
  }
  const text = await response.text();
  let data;
  try {
    data = text ? JSON.parse(text) : null;
  } catch {
    const error = new ApiError(response.status, 'NOT_JSON', 'The answer is not JSON.');
    if (/^text\/plain\b/.test(response.headers.get('Content-Type'))) error.text = text;
    throw error;
  }
  if (etag) {
    kept.set(url.href, {etag, data});
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  }
  return {data, ...about};
}

export const sessions = (signal) => get(address('sessions'), signal);
export const tools = (session, signal) => get(address('tools', [['session', session]]), signal);
export const captures = (signal) => get(address('captures'), signal);
export const server = (signal) => get(address('server'), signal);

// Begins a capture and waits for its end; describes the captured profiles.
export async function capture(query, signal) {
  const url = address('../../capture_profile', query);
  const response = await fetch(url, {method: 'POST', signal, headers: {'Xplaned-Request': '1'}});
  const {result, error} = await response.json().catch(() => ({}));
  if (result) return result.replace(' Please refresh.', '');
  throw new ApiError(response.status, 'UNKNOWN', typeof error === 'string' ? error : `The server answered ${response.status}.`);
}

// QUERY of a tool: hosts may be empty (all), options {name: value} without undefined ones.
export function toolQuery(session, tool, hosts, options) {
  const query = [['session', session], ['tool', tool]];
  for (const host of hosts || []) query.push(['host', host]);
  for (const [key, value] of Object.entries(options || {})) {
    if (value !== undefined && value !== null && value !== '') query.push([key, String(value)]);
  }
  return query;
}

// A tool's answer that is a text, not kept.
export async function text(session, name, hosts, options, signal) {
  return (await request(address('tool', toolQuery(session, name, hosts, options)), signal)).text();
}

export function tool(session, name, hosts, options, signal) {
  return get(address('tool', toolQuery(session, name, hosts, options)), signal);
}
