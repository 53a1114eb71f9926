// SPDX-License-Identifier: Apache-2.0
// The address names what is shown:  #/sessions?q=…  or  #/s/SESSION/PAGE?host=…&…
// The part after # never reaches a server, so the pages work below any prefix and on any static host.

export function parse() {
  const text = location.hash.replace(/^#\/?/, '');
  const cut = text.indexOf('?');
  const path = (cut < 0 ? text : text.slice(0, cut)).split('/');
  const params = new URLSearchParams(cut < 0 ? '' : text.slice(cut + 1));
  if (path[0] === 's' && path[1]) {
    let session = path[1];
    try {
      session = decodeURIComponent(session);
    } catch { /* as it is */
    }
    return {session, page: path[2] || 'overview', params};
  }
  return {session: null, page: path[0] || 'sessions', params};
}

// Links within a session keep its base session.
export function link(session, page, params) {
  const query = new URLSearchParams(), now = session === null ? null : parse();
  const base = now?.session === session ? now.params.get('base') : null;
  for (const [key, value] of Object.entries({...params, ...(base && !params?.base ? {base} : {})})) {
    for (const v of [value].flat())
      if (v !== undefined && v !== null && v !== '') query.append(key, v);
  }
  const tail = query.toString() ? `?${query}` : '';
  return session === null ? `#/${page}${tail}` : `#/s/${encodeURIComponent(session)}/${page}${tail}`;
}

// Changes single parameters of the address (undefined or '' removes one).  how: undefined replaces the
// address; 'push' also lets Back return to the present one (the page on show draws the change itself);
// true does so and draws the page anew.  entry: what the page wants to find in history.state; undefined leaves it as it is.
export function update(changes, how, entry = how === 'push' ? null : history.state) {
  const now = parse();
  for (const [key, value] of Object.entries(changes)) {
    now.params.delete(key);
    for (const v of [value].flat())
      if (v !== undefined && v !== null && v !== '') now.params.append(key, v);
  }
  const query = now.params.toString();
  const target =
      (now.session === null ? `#/${now.page}` : `#/s/${encodeURIComponent(now.session)}/${now.page}`) +
      (query ? `?${query}` : '');
  if (target === location.hash && entry === history.state) return;
  if (how === true)
    location.hash = target;
  else if (how === 'push')
    history.pushState(entry, '', target);
  else
    history.replaceState(entry, '', target);
}
