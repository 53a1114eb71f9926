// SPDX-License-Identifier: Apache-2.0
// The tables that tools answer with ({cols, rows, p}) as columns.

// {columns: [{id, label, type, values}], length, props}.  Numbers become a Float64Array (missing: NaN).
export function columns(table) {
  const cols = (table && table.cols) || [];
  const rows = (table && table.rows) || [];
  const out = cols.map((col, c) => {
    const role = col.p && col.p.role;
    const values = col.type === 'number' ? new Float64Array(rows.length) : new Array(rows.length);
    for (let r = 0; r < rows.length; r++) {
      const cell = rows[r].c[c];
      const v = cell ? cell.v : null;
      if (col.type === 'number')
        values[r] = typeof v === 'number' ? v : v === null || v === undefined ? NaN : Number(v);
      else if (col.type === 'boolean')
        values[r] = v === null || v === undefined ? '' : v ? 'yes' : 'no';
      else
        values[r] = v === null || v === undefined ? '' : String(v);
    }
    return {
      id: String(col.id),
      label: String(col.label || col.id),
      type: col.type === 'number' ? 'number' : 'string',
      role,
      values
    };
  });
  return {columns: out, length: rows.length, props: (table && table.p) || {}};
}

export function column(table, id) {
  return table.columns.find((c) => c.id === id) || null;
}

// COLUMNS (of a table, or made of them): those of IDS first, in that order, then the others.
export function inOrder(columns, ids) {
  return [...ids.map((id) => columns.find((c) => c.id === id)).filter(Boolean), ...columns.filter((c) => !ids.includes(c.id))];
}

// Is this the JSON of one gviz table?
export function isTable(x) {
  return Boolean(x) && typeof x === 'object' && Array.isArray(x.cols) && Array.isArray(x.rows);
}
