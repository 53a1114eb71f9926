// SPDX-License-Identifier: Apache-2.0
// "Did you mean", for names that the pages look up themselves; the server says it of hosts and tools.
// The rule is that of base/text/near.h, but long names are proposed, too.

const LETTERS = 64, PREFIX = 3;

// What is left of both without their common beginning and end.
function strip(a, b) {
  let begin = 0, end = 0;
  const least = Math.min(a.length, b.length);
  while (begin < least && a[begin] === b[begin]) begin++;
  while (end < least - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return [a.slice(begin, a.length - end), b.slice(begin, b.length - end)];
}

// Letters to insert, remove, replace or swap with their neighbour; Infinity when they are more than MOST.
function distance(given, name, most) {
  const [a, b] = strip(given, name);
  if (Math.abs(a.length - b.length) > most || Math.max(a.length, b.length) > LETTERS) return Infinity;
  const rows = [Array.from({length: b.length + 1}, (_, k) => k)];
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let k = 1; k <= b.length; k++) {
      const same = a[i - 1] === b[k - 1];
      let d = Math.min(rows[i - 1][k] + 1, rows[i][k - 1] + 1, rows[i - 1][k - 1] + (same ? 0 : 1));
      if (i > 1 && k > 1 && a[i - 1] === b[k - 2] && b[k - 1] === a[i - 2]) d = Math.min(d, rows[i - 2][k - 2] + 1);
      rows[i].push(d);
    }
    if (Math.min(...rows[i]) > most) return Infinity;
  }
  const d = rows[a.length][b.length];
  return d > most ? Infinity : d;
}

// The same of what is behind the last slash of NAME, where GIVEN has none: people leave out the directory that a
// session's name begins with.  Unless it is just that, it counts as a letter more.
function distanceOfEnd(given, name, most) {
  const at = name.lastIndexOf('/');
  const d = at < 0 || !given || given.includes('/') ? Infinity : distance(given, name.slice(at + 1), most);
  return d ? d + 1 : 0;
}

// The nearest of NAMES to one that is not among them; '' when none is near.
export function near(given, names) {
  const name = given.toLowerCase();
  const most = name.length < 3 ? 0 : name.length < 6 ? 1 : name.length < 9 ? 2 : 3;
  let best = '', least = Infinity;
  for (const n of names) {
    const other = n.toLowerCase();
    let d = Math.min(distance(name, other, most), distanceOfEnd(name, other, most));
    // What merely begins so is never better than what was mistyped.
    if (d === Infinity && name.length >= PREFIX && other.startsWith(name)) d = most + 1;
    if (d < least) [best, least] = [n, d];
  }
  return best;
}
