// SPDX-License-Identifier: Apache-2.0
// "Did you mean", for names that the pages look up themselves; the server says it of hosts and tools.
// The rule is that of base/text/near.h.

// Letters to insert, remove, replace or swap with their neighbour.
function distance(a, b) {
  const rows = [Array.from({length: b.length + 1}, (_, k) => k)];
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let k = 1; k <= b.length; k++) {
      const same = a[i - 1] === b[k - 1];
      let d = Math.min(rows[i - 1][k] + 1, rows[i][k - 1] + 1, rows[i - 1][k - 1] + (same ? 0 : 1));
      if (i > 1 && k > 1 && a[i - 1] === b[k - 2] && b[k - 1] === a[i - 2]) d = Math.min(d, rows[i - 2][k - 2] + 1);
      rows[i].push(d);
    }
  }
  return rows[a.length][b.length];
}

// The nearest of NAMES to one that is not among them; '' when none is near.
export function near(given, names) {
  const name = given.slice(0, 64).toLowerCase();
  const most = name.length < 3 ? 0 : name.length < 6 ? 1 : name.length < 9 ? 2 : 3;
  let best = '', least = most + 1;
  for (const n of names) {
    const d = name.length > 2 && n.toLowerCase().startsWith(name) ? most : distance(name, n.toLowerCase());
    if (d < least) [best, least] = [n, d];
  }
  return best;
}
